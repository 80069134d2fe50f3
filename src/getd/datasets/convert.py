"""Facts from one form into another: every fact, in its order, duplicates and all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from getd.choices import WriteFormat
from getd.config import build
from getd.datasets.load import Progress, read_data
from getd.datasets.settings import DataSettings
from getd.errors import ConfigError, WriteError
from getd.facts.encode import relations_of
from getd.facts.split import SPLITS
from getd.formats.detect import COMPRESSED, ending
from getd.formats.write import (
    SUFFIX,
    WRITE_FORMATS,
    check_hyper,
    names_without_roles,
    write_named,
)
from getd.io.atomic import atomic_path

_FORM_OF: dict[str, WriteFormat] = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


@dataclass(frozen=True)
class Conversion:
    """What was written."""

    facts: dict[str, int]  # by file
    notices: tuple[str, ...]  # what a user should be told about the data


def convert(
    data: str | Path,
    out: str | Path,
    to: WriteFormat | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Conversion:
    """Write a data set in another form.

    Parameters
    ----------
    data
        What to read, as for :func:`getd.load`.
    out
        A file (its ending tells the form), for data that is one file; else a folder for ``train``, ``valid``, ``test``:
        data without splits is split 8:1:1 on the way into a folder.
    to
        The form; ``tsv`` for a folder where it is not given.
    overwrite
        Replace what is at ``out``.
    settings
        See :class:`getd.datasets.settings.DataSettings`.
    """
    if to is not None and to not in WRITE_FORMATS:
        raise ConfigError(f"expected one of the forms {', '.join(WRITE_FORMATS)}, found {to!r}")
    chosen, target = build(DataSettings, settings, "data"), Path(out)
    if target.suffix.lower() in COMPRESSED:
        raise ConfigError(
            f"{target.name}: compressed files are read, not written; leave out {target.suffix}"
        )
    suffix = ending(target)
    if target.is_symlink():
        target = target.resolve()
    is_file = suffix in _FORM_OF and not target.is_dir()
    if is_file and to and SUFFIX[to] != SUFFIX[_FORM_OF[suffix]]:
        raise ConfigError(f"{target.name} is for {_FORM_OF[suffix]}, but --to says {to}")
    form: WriteFormat = to or (_FORM_OF[suffix] if is_file else "tsv")
    _check_target(target, overwrite)
    named = read_data(data, chosen, progress)
    if is_file and "" not in named.splits:
        raise WriteError(
            f"{out}: {named.name} has {' and '.join(named.splits)}; name a folder to write them to"
        )
    named = named if is_file else named.split(chosen.seed)
    splits, relations = named.splits, relations_of(named.splits.values())
    tsv_names = names_without_roles(relations) if form == "tsv" else {}
    if form == "hyper-csv":
        check_hyper(relations)
    with atomic_path(target, replace=overwrite) as place:
        files = {split: place if is_file else place / f"{split}{SUFFIX[form]}" for split in splits}
        for split, path in files.items():
            path.parent.mkdir(exist_ok=True)
            write_named(splits[split], path, form, tsv_names)
    lost = any(relation.has_named_roles for relation in relations) and form == "tsv"
    notices = (
        (*named.notices, "tsv has no place for roles; csv, parquet and jsonl keep them")
        if lost
        else named.notices
    )
    return Conversion({path.name: len(splits[split]) for split, path in files.items()}, notices)


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if not overwrite:
        raise WriteError(f"{target} exists; choose another place or pass --overwrite")
    ours = {f"{split}{suffix}" for split in SPLITS for suffix in SUFFIX.values()}
    others = sorted({entry.name for entry in target.iterdir()} - ours) if target.is_dir() else []
    if others:  # never remove what we would not have written
        raise WriteError(f"{target} holds more than facts ({others[0]}); choose another place")

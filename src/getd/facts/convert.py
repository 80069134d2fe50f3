"""Facts from one form into another: every fact, in its order, duplicates and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from getd.errors import ConfigError, WriteError
from getd.facts.encode import relations_of
from getd.facts.files import atomic_path
from getd.facts.folder import find_splits
from getd.facts.load import Progress, read_data
from getd.facts.read import COMPRESSED, ending
from getd.facts.settings import DataSettings
from getd.facts.write import SUFFIX, WRITE_FORMATS, WriteFormat, names_without_roles, write_labels
from getd.settings import build

_FORM_OF = {".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def convert(
    data: str | Path,
    out: str | Path,
    to: WriteFormat | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> dict[str, int]:
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
        See :class:`getd.facts.settings.DataSettings`.

    Returns
    -------
    How many facts were written to each file.
    """
    if to is not None and to not in WRITE_FORMATS:
        raise ConfigError(f"expected one of the forms {', '.join(WRITE_FORMATS)}, found {to!r}")
    chosen, target = build(DataSettings, settings, "data"), Path(out)
    if target.suffix.lower() in COMPRESSED:
        raise ConfigError(f"{target.name}: compressed files are read, not written; leave out {target.suffix}")
    suffix = ending(target)
    is_file = suffix in _FORM_OF and not target.is_dir()
    form = to or cast(WriteFormat, _FORM_OF[suffix] if is_file else "tsv")
    _check_target(target, is_file, overwrite)
    named = read_data(data, chosen, progress)
    if is_file and "" not in named.splits:
        raise WriteError(f"{out}: {named.name} has {' and '.join(named.splits)}; name a folder to write them to")
    splits = named.splits if is_file else named.split(chosen.seed).splits
    tsv_names = names_without_roles(relations_of(splits.values())) if form == "tsv" else {}
    with atomic_path(target, replace=overwrite) as place:
        files = {split: place if is_file else place / f"{split}{SUFFIX[form]}" for split in splits}
        for split, path in files.items():
            path.parent.mkdir(exist_ok=True)
            write_labels(splits[split], path, form, tsv_names)
    return {path.name: len(splits[split]) for split, path in files.items()}


def _check_target(target: Path, is_file: bool, overwrite: bool) -> None:
    if not target.exists():
        return
    if not overwrite:
        raise WriteError(f"{target} exists; choose another place or pass --overwrite")
    if target.is_dir() and not is_file:  # never remove what we would not have written
        facts = {path for paths in find_splits(target).values() for path in paths} if any(target.iterdir()) else set()
        others = sorted(entry.name for entry in target.iterdir() if entry not in facts)
        if others:
            raise WriteError(f"{target} holds more than facts ({others[0]}); choose another place")

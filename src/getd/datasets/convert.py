"""Facts from one format into another: every fact, in its order, duplicates included."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from getd.choices import WriteFormat
from getd.config import build
from getd.datasets.download import Progress
from getd.datasets.load import read_data
from getd.datasets.settings import DataSettings
from getd.errors import ConfigError, WriteError
from getd.facts.encode import relations_of
from getd.facts.split import SPLITS
from getd.formats.format import COMPRESSED, ending
from getd.formats.registry import FORMATS, write_named
from getd.io.atomic import atomic_path


@dataclass(frozen=True)
class Conversion:
    facts: dict[str, int]  # by file
    notices: tuple[str, ...]  # for the user


def convert(
    data: str | Path,
    out: str | Path,
    to: WriteFormat | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Conversion:
    """Write a data set in another format.

    Parameters
    ----------
    data
        What to read, as for :func:`getd.load`.
    out
        A file (its ending tells the format), for data that is one file; else a folder for
        ``train``, ``valid``, ``test``. Data without splits is split 8:1:1 on the way into a folder.
    to
        The format; ``tsv`` for a folder by default.
    overwrite
        Replace what is at ``out``.
    settings
        See :class:`getd.datasets.settings.DataSettings`.
    """
    checked = build(DataSettings, settings, "data")
    target, is_file, format_name = _choose_target(Path(out), to)
    _check_free(target, overwrite)

    named = read_data(data, checked, progress)
    if not is_file:
        named = named.split(checked.seed)
    elif "" not in named.splits:
        own = " and ".join(named.splits)
        raise WriteError(f"{out}: {named.name} has {own}; name a folder to write them to")

    n_facts = {}
    relations = relations_of(named.splits.values())
    suffix = FORMATS[format_name].suffix
    with atomic_path(target, replace=overwrite) as temporary:
        for split, facts in named.splits.items():
            path = temporary if is_file else temporary / f"{split}{suffix}"
            path.parent.mkdir(exist_ok=True)
            write_named(facts, path, format_name, relations)
            n_facts[path.name] = len(facts)

    notices = named.notices
    if format_name == "tsv" and any(relation.has_named_roles for relation in relations):
        notices = (*notices, "tsv has no place for roles; csv, parquet and jsonl keep them")
    return Conversion(n_facts, notices)


def _choose_target(out: Path, to: WriteFormat | None) -> tuple[Path, bool, WriteFormat]:
    """Where to write, whether it is a file (else a folder, with one for each split), and how."""
    formats = get_args(WriteFormat)
    if to is not None and to not in formats:
        raise ConfigError(f"expected one of the forms {', '.join(formats)}, found {to!r}")
    if out.suffix.lower() in COMPRESSED:
        message = f"compressed files are read, not written; leave out {out.suffix}"
        raise ConfigError(f"{out.name}: {message}")

    end = ending(out)
    by_ending = next((name for name in formats if end in FORMATS[name].endings), None)
    path = out.resolve() if out.is_symlink() else out
    if by_ending is None or path.is_dir():
        return path, False, to or "tsv"
    if to and FORMATS[to].suffix != FORMATS[by_ending].suffix:
        raise ConfigError(f"{path.name} is for {by_ending}, but --to says {to}")
    return path, True, to or by_ending


def _check_free(target: Path, overwrite: bool) -> None:
    """Refuse a target that exists, or holds what we would not have written."""
    if not target.exists():
        return
    if not overwrite:
        raise WriteError(f"{target} exists; choose another place or pass --overwrite")

    if target.is_dir():
        suffixes = [form.suffix for form in FORMATS.values() if form.write]
        ours = {f"{split}{suffix}" for split in SPLITS for suffix in suffixes}
        others = sorted({entry.name for entry in target.iterdir()} - ours)
        if others:
            raise WriteError(f"{target} holds more than facts ({others[0]}); choose another place")

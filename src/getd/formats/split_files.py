"""Which files of a folder are the facts of which split."""

import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from getd.errors import DataNotFound, FactFileError
from getd.facts.split import SPLITS
from getd.formats.format import ending
from getd.formats.registry import ENDINGS, stem

_ALIASES = {"training": "train", "validation": "valid", "val": "valid", "dev": "valid"} | {
    split: split for split in SPLITS
}
_NOT_FACTS = re.compile(
    r"^\.|(^|[^a-z])(readme|licen[cs]e|changelog)([^a-z].*)?\.txt$", re.IGNORECASE
)
SplitPaths = dict[str, list[Path]]  # by split


@dataclass(frozen=True)
class SplitFiles:
    """The fact files of a data set."""

    files: SplitPaths  # under "" where there are no splits
    left_out: tuple[Path, ...] = ()  # that look like facts, but belong to no split


def find_splits(folder: Path) -> SplitFiles:
    """Find the fact files of a folder.

    A split is a file (``train.txt``, ``n-ary_valid.json.gz``, …) or a folder of files
    (``train/…``). Where no name mentions a split, all files together are one set.
    """
    try:
        exact, loose, others = _sort_out(folder)
    except OSError as error:
        raise FactFileError(folder, f"cannot be read: {error.strerror or error}") from None

    # quiz_test.csv next to other tables, and without a train file, is a table.
    if others and not exact and "train" not in loose:
        others = sorted([*others, *chain(*loose.values())])
        loose = {}

    sources = loose | exact
    for split, paths in sources.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise FactFileError(folder, f"expected one source of {split} facts, found {names}")
    if not sources and not others:
        expected = f"files train, valid, test ending in {', '.join(ENDINGS)}"
        raise DataNotFound(f"{folder}: expected {expected}, found none")

    # Fact files that no split takes, and whatever else is in the folder of a split, are left out.
    files = {split: _fact_files(sources[split][0]) for split in SPLITS if split in sources}
    files = files or {"": others}
    in_folders = [sorted(path.iterdir()) for path in chain(*sources.values()) if path.is_dir()]
    seen = [*others, *chain(*loose.values()), *chain(*in_folders)]
    used = set(chain(*files.values()))
    return SplitFiles(files, tuple(path for path in seen if path not in used))


def _sort_out(folder: Path) -> tuple[SplitPaths, SplitPaths, list[Path]]:
    """Sort entries: named like a split, files with such a word in their name, other fact files."""
    exact: SplitPaths = {}  # train.txt, train/
    loose: SplitPaths = {}  # n-ary_train.json
    others: list[Path] = []  # transfers.csv
    for entry in sorted(folder.iterdir()):
        name = stem(entry).lower()
        words = [word for word in re.split(r"[^a-z]+", name) if word in _ALIASES]
        first_part = entry.name.split(".")[0]

        if name in _ALIASES and _fact_files(entry):
            exact.setdefault(_ALIASES[name], []).append(entry)
        elif _is_fact_file(entry) and len(words) == 1:
            loose.setdefault(_ALIASES[words[0]], []).append(entry)
        elif _is_fact_file(entry):
            others.append(entry)
        elif first_part.lower() in _ALIASES:
            expected = f"expected {first_part} facts in files ending in {', '.join(ENDINGS)}"
            wrong = f"{entry.name}/ without such files" if entry.is_dir() else entry.name
            raise FactFileError(folder, f"{expected}, found {wrong}")
    return exact, loose, others


def _fact_files(path: Path) -> list[Path]:
    """The fact files at a path: those of a folder, or the file itself."""
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in paths if _is_fact_file(file)]


def _is_fact_file(path: Path) -> bool:
    return ending(path) in ENDINGS and not _NOT_FACTS.search(path.name) and not path.is_dir()

"""Which files of a folder are the facts, and of which split."""

from __future__ import annotations

import re
from pathlib import Path

from getd.errors import DataNotFound, FactFileError
from getd.facts.split import SPLITS
from getd.formats.detect import ENDINGS, ending, stem

_ALIASES = {"training": "train", "validation": "valid", "val": "valid", "dev": "valid"} | {
    split: split for split in SPLITS
}
_NOT_FACTS = re.compile(
    r"^\.|(^|[^a-z])(readme|licen[cs]e|changelog)([^a-z].*)?\.txt$", re.IGNORECASE
)


def find_splits(folder: Path) -> tuple[dict[str, list[Path]], list[Path]]:
    """The fact files of a folder by split (under ``""`` where they have none and are all one set), and those left out.

    A split is a file (``train.txt``, ``n-ary_valid.json.gz``, …) or a folder of files (``train/…``).
    """
    try:
        exact, loose, plain = _sort_out(folder, sorted(folder.iterdir()))
    except OSError as error:
        raise FactFileError(folder, [("", f"cannot be read: {error.strerror or error}")]) from None
    if (
        "train" not in exact | loose and not exact and plain
    ):  # quiz_test.csv beside other tables is a table
        plain, loose = sorted(plain + [path for paths in loose.values() for path in paths]), {}
    found = loose | exact
    for split, paths in found.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise FactFileError(
                folder, [("", f"expected one source of {split} facts, found {names}")]
            )
    if not found and not plain:
        raise DataNotFound(
            f"{folder}: expected files train, valid, test ending in {', '.join(ENDINGS)}, found none"
        )
    splits = {split: _files(found[split][0]) for split in SPLITS if split in found} or {"": plain}
    used = {path for paths in splits.values() for path in paths}
    seen = [*plain, *(path for paths in loose.values() for path in paths)]
    seen += [
        entry
        for paths in found.values()
        for path in paths
        if path.is_dir()
        for entry in sorted(path.iterdir())
    ]
    return splits, [path for path in seen if path not in used]


def _sort_out(
    folder: Path, entries: list[Path]
) -> tuple[dict[str, list[Path]], dict[str, list[Path]], list[Path]]:
    """Files and folders named like a split, files with such a word in their name, and other fact files."""
    exact: dict[str, list[Path]] = {}  # train.txt, train/
    loose: dict[str, list[Path]] = {}  # n-ary_train.json
    plain: list[Path] = []  # transfers.csv
    for entry in entries:
        name = stem(entry).lower()
        words = [word for word in re.split(r"[^a-z]+", name) if word in _ALIASES]
        if name in _ALIASES and _files(entry):
            exact.setdefault(_ALIASES[name], []).append(entry)
        elif _is_fact_file(entry):
            (loose.setdefault(_ALIASES[words[0]], []) if len(words) == 1 else plain).append(entry)
        elif entry.name.split(".")[0].lower() in _ALIASES:
            found = f"{entry.name}/ without such files" if entry.is_dir() else entry.name
            expected = (
                f"expected {entry.name.split('.')[0]} facts in files ending in {', '.join(ENDINGS)}"
            )
            raise FactFileError(folder, [("", f"{expected}, found {found}")])
    return exact, loose, plain


def _files(path: Path) -> list[Path]:
    """The fact files at a path: those of a folder, or the file itself."""
    return [
        file
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        if _is_fact_file(file)
    ]


def _is_fact_file(path: Path) -> bool:
    return ending(path) in ENDINGS and not _NOT_FACTS.search(path.name) and not path.is_dir()

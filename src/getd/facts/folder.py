"""Which files of a folder are the facts, and of which split."""

from __future__ import annotations

import re
from pathlib import Path

from getd.errors import DataNotFound, FactFileError
from getd.facts.read import ENDINGS, ending, stem
from getd.facts.split import SPLITS

_ALIASES = {"training": "train", "validation": "valid", "val": "valid", "dev": "valid"} | {
    split: split for split in SPLITS
}
_NOT_FACTS = re.compile(r"^\.|readme|licen[cs]e|changelog", re.IGNORECASE)


def find_splits(folder: Path) -> dict[str, list[Path]]:
    """The fact files of a folder by split; under ``""`` where they have none and are all one set.

    A split is a file (``train.txt``, ``n-ary_valid.json.gz``, …) or a folder of files (``train/…``).
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise FactFileError(folder, [("", f"cannot be read: {error.strerror or error}")]) from None
    exact: dict[str, list[Path]] = {}  # train.txt, train/
    loose: dict[str, list[Path]] = {}  # n-ary_train.json
    plain: list[Path] = []  # transfers.csv
    for entry in entries:
        name = stem(entry).lower()
        words = [word for word in re.split(r"[^a-z]+", name) if word in _ALIASES]
        if name in _ALIASES and _files(entry):
            exact.setdefault(_ALIASES[name], []).append(entry)
        elif _is_fact_file(entry) and len(words) == 1:
            loose.setdefault(_ALIASES[words[0]], []).append(entry)
        elif _is_fact_file(entry):
            plain.append(entry)
    found = exact or loose
    for split, paths in found.items():
        if len(paths) > 1:
            raise FactFileError(
                folder, [("", f"expected one source of {split} facts, found {', '.join(p.name for p in paths)}")]
            )
    splits = {split: _files(found[split][0]) for split in SPLITS if split in found}
    if not splits and plain:
        splits = {"": plain}
    if not splits:
        raise DataNotFound(f"{folder}: expected files train, valid, test ending in {', '.join(ENDINGS)}, found none")
    return splits


def _files(path: Path) -> list[Path]:
    """The fact files at a path: those of a folder, or the file itself."""
    return [file for file in (sorted(path.iterdir()) if path.is_dir() else [path]) if _is_fact_file(file)]


def _is_fact_file(path: Path) -> bool:
    return ending(path) in ENDINGS and not _NOT_FACTS.search(path.name) and not path.is_dir()

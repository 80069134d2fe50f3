"""From a name or a path to the files of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from getd.datasets.catalogue import DATASETS, changed_files, data_names, find_dataset
from getd.datasets.download import Progress
from getd.errors import DataNotFound, nearest
from getd.formats.split_files import SplitFiles, find_splits


@dataclass(frozen=True)
class Source:
    """The files of a data set."""

    name: str
    path: Path  # a folder, or the only file
    files: Mapping[str, list[Path]]  # by split; under "" where there are no splits
    notices: tuple[str, ...]  # for the user


def locate(data: str | Path, progress: Progress | None = None) -> Source:
    """Find the files at a path, or those of a data set by its name; a path comes first."""
    name = str(data)
    if name == "":
        raise DataNotFound("expected a path or the name of a data set, found an empty one")

    path = Path(data)
    is_path = path.exists()
    if not is_path:
        folder = find_dataset(data, progress) if isinstance(data, str) else None
        if folder is None and (path.is_absolute() or len(path.parts) > 1):
            raise DataNotFound(f"{data}: no such file or folder")
        if folder is None:
            hint = nearest(name, data_names())
            raise DataNotFound(f"no file, folder or data set {name!r}{hint}")
        path = folder
    found = find_splits(path) if path.is_dir() else SplitFiles({"": [path]})

    notices = []
    if is_path and name in data_names():
        notices.append(f"reading the path {data}, not the built-in data set of that name")
    if not is_path and name in DATASETS:
        changed = changed_files(name, found.files)
        notices += [f"{file} of {name} is not the published file" for file in changed]
    if found.left_out:
        left_out = ", ".join(file.name for file in found.left_out)
        notices.append(f"{path}: left out {left_out}")
    return Source(path_name(path) if is_path else name, path, found.files, tuple(notices))


def path_name(path: Path) -> str:
    """What a data set at a path is called.

    >>> path_name(Path("data/transfers.csv.gz"))
    'transfers'
    """
    resolved = path.resolve()
    return resolved.name if resolved.is_dir() else resolved.name.split(".")[0] or resolved.name

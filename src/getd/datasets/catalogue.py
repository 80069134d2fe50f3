"""Data sets by name: where they come from, what they hold, and what their files hash to."""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from getd.datasets.download import Progress, fetch
from getd.datasets.synthetic import SYNTHETIC
from getd.errors import DownloadError
from getd.formats.split_files import SplitPaths
from getd.io.atomic import atomic_path
from getd.io.lines import read_blocks
from getd.io.user_cache import user_cache


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set with a name; ``catalogue.toml`` explains the fields of published ones."""

    name: str
    about: str
    source: str
    facts: tuple[int, ...] | None = None
    entities: int | None = None
    relations: int | None = None
    arities: str | None = None
    licence: str | None = None
    addresses: Sequence[str] = ()  # with {name} and {split} to be filled in
    columns: Sequence[int] | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)


def _read_catalogue() -> dict[str, DataSet]:
    path = Path(__file__).with_name("catalogue.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    addresses = tables.pop("addresses")

    datasets = {}
    for name, table in tables.items():
        table["facts"] = tuple(table["facts"])
        table["addresses"] = addresses[table["addresses"]]
        datasets[name] = DataSet(name=name, **table)
    return datasets


DATASETS = _read_catalogue()
GENERATED = {
    "demo": "a sports world with hidden rules",
    **dict.fromkeys(SYNTHETIC, "the paper's toy tensor of CP rank one"),
}
DATA_NAMES = (*GENERATED, *DATASETS)  # every name that :func:`getd.load` knows by itself


def list_datasets() -> list[tuple[DataSet, str | None]]:
    """Every data set with a name, and where it is on this machine; None: not downloaded yet."""
    listed: list[tuple[DataSet, str | None]] = []
    for name, about in GENERATED.items():
        listed.append((DataSet(name=name, about=about, source="generated"), "built in"))
    for name, dataset in DATASETS.items():
        folder = locate_dataset(name)
        listed.append((dataset, str(folder) if folder else None))
    return listed


def find_dataset(name: str, progress: Progress | None = None) -> Path | None:
    """The folder of a data set, downloaded into the user's cache if need be; None: unknown name."""
    folder = locate_dataset(name)
    if folder is None and name in DATASETS:
        folder = cache_folder() / name
        download(DATASETS[name], folder, progress)
    return folder


def locate_dataset(name: str) -> Path | None:
    """The folder of a data set on this machine: in ``$GETD_DATA``, or in the user's cache."""
    if not name or Path(name).name != name:
        return None
    folders = [cache_folder()]
    if os.environ.get("GETD_DATA"):
        folders.insert(0, Path(os.environ["GETD_DATA"]))
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def cache_folder() -> Path:
    """Where downloaded data sets are kept."""
    return user_cache("data")


def download(dataset: DataSet, target: Path, progress: Progress | None = None) -> None:
    """Fetch a data set in normal form; ``target`` appears only when every file is right."""
    with atomic_path(target) as folder:
        folder.mkdir()
        for file, expected in dataset.sha256.items():
            names = {"name": dataset.name, "split": Path(file).stem}
            urls = [address.format_map(names) for address in dataset.addresses]
            data = normalise(fetch(urls, progress), dataset.columns)

            digest = hashlib.sha256(data).hexdigest()
            if digest != expected:
                wrong = f"expected SHA-256 {expected}, found {digest}"
                raise DownloadError(f"{target.name}/{file} from {urls[0]}: {wrong}")
            (folder / file).write_bytes(data)


def normalise(data: bytes, columns: Sequence[int] | None) -> bytes:
    r"""Published lines in normal form: relation first, one tab between fields.

    >>> normalise(b"a likes b\n", (1, 0, 2))
    b'likes\ta\tb\n'
    """
    if columns is None:
        return data
    rows = [line.split() for line in data.split(b"\n") if line.strip()]
    if columns:
        rows = [[row[column] for column in columns] for row in rows]
    return b"".join(b"\t".join(row) + b"\n" for row in rows)


def changed_files(name: str, files: SplitPaths) -> list[str]:
    """The files of a published data set, given by split, that are not what was published."""
    paths = {}
    for first, *_ in files.values():
        paths[first.name.removesuffix(".gz").removesuffix(".zst")] = first

    changed = []
    for file, expected in DATASETS[name].sha256.items():
        data = b"".join(read_blocks(paths[file])) if file in paths else b""
        if hashlib.sha256(data).hexdigest() != expected:
            changed.append(file)
    return changed

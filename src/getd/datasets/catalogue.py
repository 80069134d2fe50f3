"""Data sets by name: where they come from, what they hold, and what their files hash to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from getd.datasets.download import fetch_files
from getd.formats.split_files import find_splits
from getd.io.lines import read_blocks

# how the published files differ from ours (relation first, tabs): the places of our columns in theirs
_UNCHANGED: tuple[int, ...] | None = None
_SPACED: tuple[int, ...] | None = ()  # relation first already, any white space between
_HEAD_RELATION_TAIL: tuple[int, ...] | None = (1, 0, 2)

# the same files at a fixed commit, and at the head of the branch should the short name of a commit not be found
_RAW = "https://raw.githubusercontent.com"
_GETD_NARY = (
    f"{_RAW}/liuyuaa/GETD/cd81d1c4a3de810c8ff2d4fed600fcd34cd1bc6c/Nary%20code/data/{{name}}/{{split}}.txt",
)
_GETD_BINARY = (
    f"{_RAW}/liuyuaa/GETD/cd81d1c4a3de810c8ff2d4fed600fcd34cd1bc6c/binary%20code/data/{{name}}/{{split}}.txt",
)
_VILLMOW = (
    f"{_RAW}/villmow/datasets_knowledge_embedding/9e392453d6804d1f51c13e5650ae58ed48b638d5/{{name}}/{{split}}.txt",
)
_RAM = tuple(
    f"{_RAW}/liuyuaa/RAM/{commit}/data/{{name}}/{{split}}.txt" for commit in ("fb4de01e", "master")
)
_STARE = tuple(
    f"{_RAW}/migalkin/StarE/{commit}/data/clean/wd50k/statements/{{split}}.txt"
    for commit in ("f40a5ee0", "master")
)


@dataclass(frozen=True)
class DataSet:
    """A published data set in our normal form: what it holds, and how to get it."""

    name: str
    about: str
    facts: tuple[int, int, int]  # in train, valid, test
    entities: int
    relations: int  # relation names; in WD50K also those of qualifiers
    arities: str
    licence: str
    source: str
    folders: tuple[
        str, ...
    ]  # addresses of a file, {name} and {split} to be filled in; the first that answers is taken
    form: tuple[int, ...] | None
    sha256: Mapping[str, str]  # of each file in normal form, unpacked


DATASETS = {
    dataset.name: dataset
    for dataset in (
        DataSet(
            name="WikiPeople-3",
            about="people of Wikidata, 3-ary facts",
            facts=(20656, 2582, 2582),
            entities=12270,
            relations=66,
            arities="3",
            licence="MIT (repository)",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_NARY,
            form=_SPACED,
            sha256={
                "train.txt": "5cb61c998c036e877e54bbf666a28ffdfc435b986c54da25c5de6833d3125a44",
                "valid.txt": "c0b634f24f3c911192b3586257e389bee9f08b9c88df14374e23fa7b9671766c",
                "test.txt": "38b862010c56251be60d393dbfb6bbf87eadbfdf49b7254126f1db9e11c6bdf9",
            },
        ),
        DataSet(
            name="WikiPeople-4",
            about="people of Wikidata, 4-ary facts",
            facts=(12150, 1519, 1519),
            entities=9528,
            relations=50,
            arities="4",
            licence="MIT (repository)",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_NARY,
            form=_SPACED,
            sha256={
                "train.txt": "683e2ebfbed9c833ef1d1e4536071e1926413e30c951f54a4d376d8518d848bb",
                "valid.txt": "0e7fdbe1291cf82eb696f1b368423b4ac59af81508dea43cfbb307a1dfa45463",
                "test.txt": "24fa3efa022e25402c223c4d7cb701d3121dde34108abc9fdcc5afa85e4c6fe3",
            },
        ),
        DataSet(
            name="JF17K-3",
            about="Freebase, 3-ary facts",
            facts=(27635, 3454, 3455),
            entities=11541,
            relations=104,
            arities="3",
            licence="MIT (repository)",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_NARY,
            form=_SPACED,
            sha256={
                "train.txt": "ce328fc5cc72df4a4aa0050e5a2b1b20bea9b02fe00001ab2826eb4f14eea5a0",
                "valid.txt": "d81d04437a0d1e2f4d337e713f67835164fa481b9fdde69854532d4ff9e2bafb",
                "test.txt": "a3bdd9abc96e8505645385b5a58e6e1341fafb72032ec9d14d6e00c8f73db74e",
            },
        ),
        DataSet(
            name="JF17K-4",
            about="Freebase, 4-ary facts",
            facts=(7607, 951, 951),
            entities=6536,
            relations=23,
            arities="4",
            licence="MIT (repository)",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_NARY,
            form=_SPACED,
            sha256={
                "train.txt": "7e6489eb9ca023414d9fa79a3af16e41777ebfd4f7e87b6a15661ac471e48191",
                "valid.txt": "5a824b2944274f1fe58b89cedd6a3655f4fe7ffc2603eb4de64ba89af64f22c1",
                "test.txt": "d0ca4ca06eec89cc8777bec83a7b92ad5cb924deb264354e93dd800306ee8abb",
            },
        ),
        DataSet(
            name="JF17K",
            about="Freebase, mixed arity",
            facts=(61104, 15275, 24568),
            entities=28645,
            relations=322,
            arities="2-6",
            licence="MIT (repository)",
            source="github.com/liuyuaa/RAM",
            folders=_RAM,
            form=_SPACED,
            sha256={
                "train.txt": "0113a29a6b8ed73750db10c8e00078cfd805c757d390c6258f7b7bd8a9bed301",
                "valid.txt": "286e8293cbc40f4432f93c128c11ad4746fc8dbd21a2294cf43e244b8350125b",
                "test.txt": "bddd7648e36005ab8026112756afd078aec0724eb1b03305af3b6e86e5bf4c2a",
            },
        ),
        DataSet(
            name="WN18",
            about="WordNet, binary facts",
            facts=(141442, 5000, 5000),
            entities=40943,
            relations=18,
            arities="2",
            licence="WordNet 3.0 licence",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_BINARY,
            form=_HEAD_RELATION_TAIL,
            sha256={
                "train.txt": "e2e29667a46c9340897b68ea46f11deae29bbfedcff5cda36b3d138329125883",
                "valid.txt": "cee5a6959bb18b04e8cff37c2b2f8cdcbe8b09e210751a75f73dea3078878d33",
                "test.txt": "84467fed3c135e28974d0b5bc768140be7c2b683b96019c8ab152a1e1b95ecb4",
            },
        ),
        DataSet(
            name="FB15k",
            about="Freebase, binary facts",
            facts=(483142, 50000, 59071),
            entities=14951,
            relations=1345,
            arities="2",
            licence="MIT (repository)",
            source="github.com/liuyuaa/GETD",
            folders=_GETD_BINARY,
            form=_HEAD_RELATION_TAIL,
            sha256={
                "train.txt": "279073aff4c799e40d253eb38c8d1056aa089f3257a0603d4ecf4c729ccedad9",
                "valid.txt": "3d70f5d4fe4db45ce0cb01b4655e8c6761486f7900bccf4cf24bed7a82ffd1f3",
                "test.txt": "c57b259c6c104c3a127426fb713e3e29d4930ea998019e129e872794492e2d94",
            },
        ),
        DataSet(
            name="FB15k-237",
            about="Freebase, binary facts without inverse relations",
            facts=(272115, 17535, 20466),
            entities=14541,
            relations=237,
            arities="2",
            licence="MIT (repository)",
            source="github.com/villmow/datasets_knowledge_embedding",
            folders=_VILLMOW,
            form=_HEAD_RELATION_TAIL,
            sha256={
                "train.txt": "bfd09a215a3a53f23a1821e3241f3379176a732cfaf8fa47f6d065f216fef0b9",
                "valid.txt": "ed64ae0c7920c44eb66de3c70c13e1fdc5b972b0202e60b893d7a7d0421e10ed",
                "test.txt": "849d6d1ea0dfb51d026e28f331c263c02b09023bb551f42435c94285c13521d8",
            },
        ),
        DataSet(
            name="WD50K",
            about="Wikidata, facts with qualifiers",
            facts=(166435, 23913, 46159),
            entities=47155,
            relations=531,
            arities="2-67",
            licence="CC BY 4.0",
            source="github.com/migalkin/StarE",
            folders=_STARE,
            form=_UNCHANGED,
            sha256={
                "train.csv": "e9aba6bb10e3deba00e2172d793ee793b93d134050d2fd00038f74e5757ecf59",
                "valid.csv": "1e14707f2be1df2725f85876894c937e3293ff7bce68aaf8b340c743fb0a6f3d",
                "test.csv": "d361fe8b4a0cfb41016471f9118f2d61ef0ed5c97569709ec2ba869b721b5028",
            },
        ),
    )
}


def find_dataset(
    name: str, progress: Callable[[str, int, int | None], None] | None = None
) -> Path | None:
    """The folder of a data set: in ``$GETD_DATA``, in the user's cache, or downloaded there; ``None``: unknown name."""
    found = locate_dataset(name)
    if found is None and name in DATASETS:
        found = cache_folder() / name
        download(DATASETS[name], found, progress)
    return found


def locate_dataset(name: str) -> Path | None:
    """The folder of a data set that is on this machine already."""
    if not name or Path(name).name != name:
        return None
    folders = [Path(os.environ["GETD_DATA"])] if os.environ.get("GETD_DATA") else []
    return next(
        (folder / name for folder in [*folders, cache_folder()] if (folder / name).exists()), None
    )


def cache_folder() -> Path:
    """Where downloaded data sets are kept."""
    return platformdirs.user_cache_path("getd") / "data"


def download(
    dataset: DataSet, target: Path, progress: Callable[[str, int, int | None], None] | None = None
) -> None:
    """Fetch a data set, bring it into normal form, check it, and put it at ``target`` in one step."""
    addresses = {
        file: [
            address.format(name=dataset.name, split=Path(file).stem) for address in dataset.folders
        ]
        for file in dataset.sha256
    }
    fetch_files(
        addresses, dataset.sha256, lambda data: normalise(data, dataset.form), target, progress
    )


def normalise(data: bytes, places: tuple[int, ...] | None) -> bytes:
    r"""Published lines in normal form: relation first, one tab between fields.

    >>> normalise(b"a likes b\n", (1, 0, 2))
    b'likes\ta\tb\n'
    """
    if places is None:
        return data
    rows = [line.split() for line in data.split(b"\n") if line.strip()]
    return b"".join(
        b"\t".join([row[place] for place in places] if places else row) + b"\n" for row in rows
    )


def verify(name: str, folder: Path) -> list[str]:
    """The files of a named data set that are not what was published."""
    found = {
        paths[0].name.removesuffix(".gz").removesuffix(".zst"): paths[0]
        for paths in find_splits(folder)[0].values()
    }
    return [
        file
        for file, digest in DATASETS[name].sha256.items()
        if file not in found or sha256(found[file]) != digest
    ]


def sha256(path: Path) -> str:
    """The SHA-256 of a file, unpacked."""
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()

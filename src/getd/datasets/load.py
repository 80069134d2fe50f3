"""A path or a name to a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from getd.choices import ReadFormat
from getd.config import build
from getd.datasets.catalogue import DATASETS, find_dataset, locate_dataset, verify
from getd.datasets.demo import demo_labels
from getd.datasets.settings import DataSettings
from getd.datasets.synthetic import SYNTHETIC, synthetic_facts
from getd.errors import DataNotFound, FactError, nearest
from getd.facts.knowledge_base import KnowledgeBase, split_notice, tuples_to_named
from getd.facts.named import NamedFacts, concatenate
from getd.facts.role_order import RoleOrder
from getd.facts.split import split_named
from getd.formats.detect import detect_format, read_named, stem
from getd.formats.split_files import find_splits
from getd.io.problems import Problems

Progress = Callable[
    [str, int, int | None], None
]  # what is fetched, bytes so far, bytes in all where known


@dataclass(frozen=True)
class NamedSplits:
    """The facts of a data set as they stand there: names, order, duplicates and all."""

    name: str
    splits: Mapping[str, NamedFacts]  # under "" where the data has no splits
    notices: tuple[str, ...] = ()

    def split(self, seed: int) -> NamedSplits:
        """The same with splits: its own, or 8:1:1 at random."""
        if "" not in self.splits:
            return self
        return NamedSplits(
            self.name, split_named(self.splits[""], seed), (*self.notices, split_notice(seed))
        )


def load(data: str | Path, *, progress: Progress | None = None, **settings: Any) -> KnowledgeBase:
    """Load a knowledge base.

    Parameters
    ----------
    data
        A folder with ``train``, ``valid`` and ``test``, a single file (split 8:1:1), or the name of a data set.
    progress
        Called while a data set is downloaded.
    settings
        See :class:`getd.datasets.settings.DataSettings`.
    """
    chosen = build(DataSettings, settings, "data")
    named = read_data(data, chosen, progress).split(chosen.seed)
    return KnowledgeBase.from_named(named.name, named.splits, named.notices)


def read_data(
    data: str | Path, settings: DataSettings, progress: Progress | None = None
) -> NamedSplits:
    """Read the facts of a path or a named data set, keeping those of the chosen arities."""
    named = _generate(str(data), settings.seed) or _read_path(*_locate(data, progress), settings)
    splits = {split: _choose_arity(labels, settings) for split, labels in named.splits.items()}
    splits = {split: labels for split, labels in splits.items() if len(labels)}
    if not splits:
        arities = sorted({arity for labels in named.splits.values() for arity in labels.blocks})
        wanted = [f"arity {settings.arity}"] if settings.arity else []
        wanted += [f"arity {settings.max_arity} or less"] if settings.max_arity else []
        found = ", ".join(map(str, arities))
        raise FactError(
            f"{named.name}: expected facts of {' and '.join(wanted)}, found arity {found}"
        )
    return NamedSplits(named.name, splits, named.notices)


def data_names() -> list[str]:
    """Every name that :func:`load` knows by itself."""
    return ["demo", *SYNTHETIC, *DATASETS]


def list_datasets() -> list[dict[str, Any]]:
    """What is known of every data set with a name, and the place of each on this machine (``None``: not here yet)."""
    toy = "the paper's toy tensor of CP rank one"
    generated = {"demo": "a sports world with hidden rules"} | dict.fromkeys(SYNTHETIC, toy)
    built_in: list[dict[str, Any]] = [
        {"name": name, "about": about, "source": "generated", "place": "built in"}
        for name, about in generated.items()
    ]
    published = [
        asdict(dataset) | {"place": locate_dataset(name)} for name, dataset in DATASETS.items()
    ]
    keys = (
        "name",
        "about",
        "arities",
        "facts",
        "entities",
        "relations",
        "licence",
        "source",
        "place",
        "sha256",
    )
    return [{key: record.get(key) for key in keys} for record in [*built_in, *published]]


def _generate(name: str, seed: int) -> NamedSplits | None:
    if Path(name).exists():
        return None
    if name == "demo":
        return NamedSplits(name, split_named(demo_labels(seed), seed))
    if name in SYNTHETIC:
        return NamedSplits(
            name,
            {split: tuples_to_named(facts) for split, facts in synthetic_facts(name, seed).items()},
        )
    return None


def _locate(data: str | Path, progress: Progress | None) -> tuple[Path, str, tuple[str, ...]]:
    """Where the data is, what it is called, and what should be told about it."""
    path = Path(data)
    if str(data) == "":
        raise DataNotFound("expected a path or the name of a data set, found an empty one")
    if path.exists():
        shadowed = str(data) in data_names()
        told = (
            (f"reading the path {data}, not the built-in data set of that name",)
            if shadowed
            else ()
        )
        return path, stem_name(path), told
    if isinstance(data, str) and (found := find_dataset(data, progress)):
        wrong = verify(data, found) if data in DATASETS else []
        return found, data, tuple(f"{file} of {data} is not the published file" for file in wrong)
    if path.is_absolute() or len(path.parts) > 1:
        raise DataNotFound(f"{data}: no such file or folder")
    raise DataNotFound(
        f"no file, folder or data set {str(data)!r}{nearest(str(data), data_names())}"
    )


def stem_name(path: Path) -> str:
    """What a data set at a path is called."""
    resolved = path.resolve()
    return resolved.name if resolved.is_dir() else resolved.name.split(".")[0] or resolved.name


def _read_path(
    path: Path, name: str, notices: tuple[str, ...], settings: DataSettings
) -> NamedSplits:
    files, left_out = find_splits(path) if path.is_dir() else ({"": [path]}, [])
    if left_out:
        notices = (*notices, f"{path}: left out {', '.join(file.name for file in left_out)}")
    order, first, splits = RoleOrder(), None, {}
    for split, paths in files.items():
        parts = []
        for file in paths:
            form = _form(file, first) if settings.format == "auto" else settings.format
            first = first or (form if split else None)
            is_the_split = path.is_dir() and split and len(paths) == 1 and file.parent == path
            own = (
                name if is_the_split else stem(file)
            )  # names the facts of a table without a relation column
            relation = settings.relation or own.encode(errors="replace").decode()
            labels = read_named(file, form, settings.escaped, relation, order)
            if settings.one_arity:
                _check_arity(
                    file, labels, settings.arity, ": row {}" if form == "parquet" else ":{}"
                )
            parts.append(labels)
        splits[split] = concatenate(parts)
        notices = (*notices, *splits[split].notices)
    return NamedSplits(name, splits, notices)


def _form(path: Path, first: ReadFormat | None) -> ReadFormat:
    """The form of a file; whether CSV is hyper-relational is asked of the first file of a data set alone."""
    form = detect_format(path)
    return first if first and {form, first} == {"csv", "hyper-csv"} else form


def _check_arity(path: Path, labels: NamedFacts, arity: int | None, place: str) -> None:
    first = labels.first()
    arity = arity or (first[0] if first else 0)
    problems = Problems(path, place)
    for other, block in labels.blocks.items():
        if other != arity:
            for row in block.row.tolist():
                problems.add(
                    row, f"expected 1 relation and {arity} entities, found {other} entities"
                )
    problems.check()


def _choose_arity(labels: NamedFacts, settings: DataSettings) -> NamedFacts:
    def wanted(arity: int) -> bool:
        return settings.arity in (None, arity) and arity <= (settings.max_arity or arity)

    return labels.with_blocks(
        {arity: block for arity, block in labels.blocks.items() if wanted(arity)}
    )

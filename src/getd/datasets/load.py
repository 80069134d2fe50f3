"""A name or a path to a knowledge base: locate, read, choose arities, split, encode."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from getd.choices import ReadFormat
from getd.config import build
from getd.datasets.catalogue import DATA_NAMES, DATASETS, changed_files, find_dataset
from getd.datasets.demo import demo_facts
from getd.datasets.download import Progress
from getd.datasets.settings import DataSettings
from getd.datasets.synthetic import SYNTHETIC, synthetic_facts
from getd.errors import DataNotFound, FactError, nearest
from getd.facts.frames import is_frame
from getd.facts.knowledge_base import KnowledgeBase, split_notice, tuples_to_named
from getd.facts.named import NamedFacts, concatenate
from getd.facts.role_order import RoleOrder
from getd.facts.split import split_named
from getd.formats.format import ReadOptions
from getd.formats.registry import detect_format, read_named, stem
from getd.formats.split_files import SplitFiles, SplitPaths, find_splits
from getd.io.problems import Problems


@dataclass(frozen=True)
class _Source:
    name: str
    path: Path  # a folder, or the only file
    files: SplitPaths  # under "" where there are no splits
    notices: tuple[str, ...]  # for the user


@dataclass(frozen=True)
class NamedSplits:
    """The facts of a data set as they are in its files: names, order and duplicates."""

    name: str
    splits: Mapping[str, NamedFacts]  # under "" where the data has no splits
    notices: tuple[str, ...] = ()  # for the user

    def split(self, seed: int) -> Self:
        """The same facts in splits: their own, or 8:1:1 at random."""
        if "" not in self.splits:
            return self
        notices = (*self.notices, split_notice(seed))
        return replace(self, splits=split_named(self.splits[""], seed), notices=notices)


def load(data: str | Path, *, progress: Progress | None = None, **settings: Any) -> KnowledgeBase:
    """Load a knowledge base.

    Parameters
    ----------
    data
        A folder with ``train``, ``valid`` and ``test``, a single file (split 8:1:1), or the name
        of a data set.
    progress
        Called while a data set is downloaded.
    settings
        See :class:`getd.datasets.settings.DataSettings`.
    """
    if not isinstance(data, str | Path):
        expected = "expected a path or the name of a data set"
        hint = "; for facts in Python there are KnowledgeBase.from_facts and from_dataframe"
        raise FactError(f"{expected}, found {type(data).__name__}{hint}")
    checked = build(DataSettings, settings, "data")
    named = read_data(data, checked, progress).split(checked.seed)
    return KnowledgeBase.from_named(named.name, named.splits, named.notices)


def to_knowledge_base(data: Any) -> KnowledgeBase:
    """Return a knowledge base as it is; load a path or a name, and read tuples or data frames."""
    if isinstance(data, KnowledgeBase):
        return data
    if isinstance(data, str | Path):
        return load(data)

    parts = list(data.values()) if isinstance(data, Mapping) else [data]
    if any(is_frame(part) for part in parts):
        return KnowledgeBase.from_dataframe(data)
    return KnowledgeBase.from_facts(data)


def read_data(data: str | Path, settings: DataSettings, progress: Progress | None) -> NamedSplits:
    """Read or generate the facts of a data set, and keep those of the chosen arities."""
    named = _generate(str(data), settings.seed)
    if named is None:
        named = _read_files(_locate(data, progress), settings)
    return _choose_arities(named, settings)


def _generate(name: str, seed: int) -> NamedSplits | None:
    if Path(name).exists():  # a path comes first
        return None
    if name == "demo":
        return NamedSplits(name, split_named(demo_facts(seed), seed))
    if name in SYNTHETIC:
        tuples = synthetic_facts(name, seed)
        return NamedSplits(name, {split: tuples_to_named(part) for split, part in tuples.items()})
    return None


def _locate(data: str | Path, progress: Progress | None) -> _Source:
    """Find the files at a path, or those of a data set by its name; a path comes first."""
    name = str(data)
    if name == "":
        raise DataNotFound("expected a path or the name of a data set, found an empty one")

    is_path = Path(data).exists()
    path = Path(data) if is_path else _find_by_name(data, progress)
    split_files = find_splits(path) if path.is_dir() else SplitFiles({"": [path]})

    notices = []
    if is_path and name in DATA_NAMES:
        notices.append(f"reading the path {data}, not the built-in data set of that name")
    if not is_path and name in DATASETS:
        changed = changed_files(name, split_files.files)
        notices += [f"{file} of {name} is not the published file" for file in changed]
    if split_files.left_out:
        left_out = ", ".join(file.name for file in split_files.left_out)
        notices.append(f"{path}: left out {left_out}")

    if is_path:  # named after the folder, or after the file without its endings
        resolved = path.resolve()
        name = resolved.name if resolved.is_dir() else resolved.name.split(".")[0] or resolved.name
    return _Source(name, path, split_files.files, tuple(notices))


def _find_by_name(data: str | Path, progress: Progress | None) -> Path:
    folder = find_dataset(data, progress) if isinstance(data, str) else None
    if folder is not None:
        return folder
    if Path(data).is_absolute() or len(Path(data).parts) > 1:
        raise DataNotFound(f"{data}: no such file or folder")
    hint = nearest(str(data), DATA_NAMES)
    raise DataNotFound(f"no file, folder or data set {str(data)!r}{hint}")


def _read_files(source: _Source, settings: DataSettings) -> NamedSplits:
    """Read the files of each split; all of them share the order of roles."""
    role_order = RoleOrder()
    notices = source.notices
    splits = {}
    first_format: ReadFormat | None = None
    for split, paths in source.files.items():
        parts = []
        for path in paths:
            format_name = _format_of(path, settings, first_format)
            if split and first_format is None:
                first_format = format_name

            relation = settings.relation or _default_relation(source, split, path)
            options = ReadOptions(settings.escaped, relation, role_order)
            facts = read_named(path, format_name, options)
            if settings.one_arity:
                _check_one_arity(path, facts, settings.arity, format_name)
            parts.append(facts)
        splits[split] = concatenate(parts)
        notices = (*notices, *splits[split].notices)
    return NamedSplits(source.name, splits, notices)


def _format_of(path: Path, settings: DataSettings, first_format: ReadFormat | None) -> ReadFormat:
    """The format of a file; whether CSV is hyper-relational, the first file of a split decides."""
    if settings.format != "auto":
        return settings.format
    detected = detect_format(path)
    if first_format and {detected, first_format} == {"csv", "hyper-csv"}:
        return first_format
    return detected


def _default_relation(source: _Source, split: str, path: Path) -> str:
    """The relation of a table without a relation column: the data set's name, or the file's."""
    is_whole_split = split != "" and path.parent == source.path and len(source.files[split]) == 1
    name = source.name if is_whole_split else stem(path)
    return name.encode(errors="replace").decode()


def _check_one_arity(
    path: Path, facts: NamedFacts, arity: int | None, format_name: ReadFormat
) -> None:
    """Refuse facts of another arity than the chosen one, or than that of the first fact."""
    arity = arity or facts.first()[0]
    problems = Problems(path, ": row {}" if format_name == "parquet" else ":{}")
    for other, block in facts.blocks.items():
        if other != arity:
            message = f"expected 1 relation and {arity} entities, found {other} entities"
            for row in block.row.tolist():
                problems.add(row, message)
    problems.check()


def _choose_arities(named: NamedSplits, settings: DataSettings) -> NamedSplits:
    splits = {}
    for split, facts in named.splits.items():
        blocks = {
            arity: block
            for arity, block in facts.blocks.items()
            if settings.arity in (None, arity) and arity <= (settings.max_arity or arity)
        }
        if blocks:
            splits[split] = replace(facts, blocks=blocks)
    if splits:
        return replace(named, splits=splits)

    limits = [f"arity {settings.arity}"] if settings.arity else []
    limits += [f"arity {settings.max_arity} or less"] if settings.max_arity else []
    arities = sorted({arity for facts in named.splits.values() for arity in facts.blocks})
    raise FactError(
        f"{named.name}: expected facts of {' and '.join(limits)}, "
        f"found arity {', '.join(map(str, arities))}"
    )

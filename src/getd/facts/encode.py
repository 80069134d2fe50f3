"""Labels to integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.facts.facts import Blocks, Facts
from getd.facts.labels import ARRANGEMENT, RELATION, ROW, Labels, entity_columns
from getd.facts.relation import Relation, Roles
from getd.facts.row_index import RowIndex, may_repeat
from getd.facts.vocabulary import Vocabulary

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Duplicates:
    """Facts that stood more than once in a split; only the first of each was kept."""

    repeated: int = 0  # the same to the letter
    reordered: int = 0  # the same once qualifiers stand in canonical order

    @property
    def total(self) -> int:
        return self.repeated + self.reordered


def relations_of(parts: Iterable[Labels]) -> set[Relation]:
    """Every relation, name and roles, of some facts."""
    return {
        Relation(name, roles)
        for labels in parts
        for roles, block in labels.blocks.items()
        for name in block[RELATION].unique().cast(pl.String)
    }


@dataclass(frozen=True)
class EntityNames:
    """The entities of some labels: the numbers their own dictionary gives them, and their names."""

    numbers: Ids
    names: pl.Series

    @classmethod
    def of(cls, labels: Labels) -> EntityNames:
        columns = [block[name] for roles, block in labels.blocks.items() for name in entity_columns(len(roles))]
        if not columns:
            return cls(np.zeros(0, dtype=np.int64), pl.Series([], dtype=pl.String))
        used = np.zeros(1 + max(int(column.to_physical().to_numpy().max()) for column in columns), dtype=bool)
        for column in columns:
            used[column.to_physical().to_numpy()] = True
        numbers = np.flatnonzero(used)
        return cls(numbers, pl.Series(numbers.astype(np.uint32)).cat.to(columns[0].dtype).cast(pl.String))


def encode_blocks(
    labels: Labels, names: EntityNames, entities: Vocabulary, relations: Mapping[Relation, int]
) -> Iterator[tuple[Roles, pl.DataFrame, Facts]]:
    """Each block of named facts with its integers."""
    table = np.zeros(1 + int(names.numbers.max(initial=0)), dtype=np.int64)
    table[names.numbers] = entities.ids(names.names)
    for roles, block in labels.blocks.items():
        columns = np.empty((len(block), len(roles)), dtype=np.int64)
        for j, name in enumerate(entity_columns(len(roles))):
            columns[:, j] = table[block[name].to_physical().to_numpy()]
        distinct = block[RELATION].unique()
        numbers = np.zeros(1 + int(distinct.to_physical().to_numpy().max()), dtype=np.int64)
        numbers[distinct.to_physical().to_numpy()] = [
            relations[Relation(name, roles)] for name in distinct.cast(pl.String)
        ]
        yield roles, block, Facts(numbers[block[RELATION].to_physical().to_numpy()], columns)


def encode(
    labels: Labels, names: EntityNames, entities: Vocabulary, relations: Mapping[Relation, int]
) -> tuple[Blocks, Duplicates]:
    """The facts of a split without duplicates, a block per arity in the order of their rows, and the duplicates."""
    parts: dict[int, list[tuple[Ids, Facts, Ids]]] = {}
    for roles, block, facts in encode_blocks(labels, names, entities, relations):
        has_arrangement = ARRANGEMENT in block.columns
        arrangement = block[ARRANGEMENT].to_numpy() if has_arrangement else np.zeros(len(block), dtype=np.int64)
        parts.setdefault(len(roles), []).append((block[ROW].to_numpy(), facts, arrangement))
    blocks, repeated, reordered = {}, 0, 0
    for arity in sorted(parts):
        facts, arrangement = _in_order(parts[arity])
        blocks[arity], dropped, same = _drop_duplicates(facts, arrangement, len(relations), len(entities))
        repeated, reordered = repeated + same, reordered + dropped - same
    return MappingProxyType(blocks), Duplicates(repeated, reordered)


def _in_order(parts: list[tuple[Ids, Facts, Ids]]) -> tuple[Facts, Ids]:
    if len(parts) == 1:
        return parts[0][1], parts[0][2]
    order = np.argsort(np.concatenate([rows for rows, _, _ in parts]), kind="stable")
    relation = np.concatenate([facts.relation for _, facts, _ in parts])[order]
    entities = np.concatenate([facts.entities for _, facts, _ in parts])[order]
    return Facts(relation, entities), np.concatenate([arrangement for _, _, arrangement in parts])[order]


def _drop_duplicates(facts: Facts, arrangement: Ids, n_relations: int, n_entities: int) -> tuple[Facts, int, int]:
    """The distinct facts by first appearance, how many were dropped, how many of these the same to the letter."""
    columns = [facts.relation, *facts.entities.T]
    if not may_repeat(columns):
        return facts, 0, 0
    index, numbers = RowIndex.build(columns, [n_relations] + [n_entities] * facts.arity)
    n_dropped = len(facts) - len(index)
    if n_dropped == 0:
        return facts, 0, 0
    first = np.full(len(index), len(facts))
    np.minimum.at(first, numbers, np.arange(len(facts)))
    literal, _ = RowIndex.build([numbers, arrangement], [len(index), 1 + int(arrangement.max())])
    return facts.take(np.sort(first)), n_dropped, len(facts) - len(literal)

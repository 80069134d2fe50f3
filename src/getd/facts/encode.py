"""NamedFacts to integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl

from getd.arrays import Ids
from getd.facts.facts import Blocks, Facts
from getd.facts.named import Block, NamedFacts
from getd.facts.relation import Relation
from getd.facts.row_index import RowIndex, may_repeat
from getd.facts.vocabulary import Vocabulary


@dataclass(frozen=True)
class Duplicates:
    """Facts that stood more than once in a split; only the first of each was kept."""

    repeated: int = 0  # the same to the letter
    reordered: int = 0  # the same once qualifiers stand in canonical order

    @property
    def total(self) -> int:
        return self.repeated + self.reordered


def relations_of(parts: Iterable[NamedFacts]) -> set[Relation]:
    """Every relation, name and roles, of some facts."""
    relations: set[Relation] = set()
    for labels in parts:
        for block in labels.blocks.values():
            relations.update(block_relations(labels, block)[0])
    return relations


def block_relations(labels: NamedFacts, block: Block) -> tuple[list[Relation], Ids]:
    """The distinct relations of a block, and which of them each fact has."""
    n_signatures = len(labels.signatures)
    pairs, inverse = distinct(block.relation.astype(np.int64) * n_signatures + block.signature)
    names = labels.relations.gather(pairs // n_signatures).to_list()
    signatures = [labels.signatures[number] for number in (pairs % n_signatures).tolist()]
    return [Relation(name, roles) for name, roles in zip(names, signatures, strict=True)], inverse


def distinct(numbers: Ids) -> tuple[Ids, Ids]:
    """``np.unique`` with the inverse; where the numbers are small, without sorting."""
    largest = int(numbers.max(initial=0))
    if largest > 4 * len(numbers) + 1000:
        values, inverse = np.unique(numbers, return_inverse=True)
        return values, inverse.reshape(-1)
    used = np.zeros(largest + 1, dtype=bool)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]


@dataclass(frozen=True)
class EntityNames:
    """The entities that some labels use: their numbers there, and their names."""

    numbers: Ids
    names: pl.Series

    @classmethod
    def of(cls, labels: NamedFacts) -> EntityNames:
        used = np.zeros(len(labels.entities), dtype=bool)
        for block in labels.blocks.values():
            used[block.entities] = True
        numbers = np.flatnonzero(used)
        return cls(numbers, labels.entities.gather(numbers))


def encode_blocks(
    labels: NamedFacts, names: EntityNames, entities: Vocabulary, relations: Mapping[Relation, int]
) -> Iterator[tuple[Block, Facts]]:
    """Each block of named facts with its integers."""
    table = np.zeros(len(labels.entities), dtype=np.int64)
    table[names.numbers] = entities.ids(names.names)
    for block in labels.blocks.values():
        found, inverse = block_relations(labels, block)
        numbers = np.array([relations[relation] for relation in found], dtype=np.int64)
        yield block, Facts(numbers[inverse], table[block.entities])


def encode(
    labels: NamedFacts, names: EntityNames, entities: Vocabulary, relations: Mapping[Relation, int]
) -> tuple[Blocks, Duplicates]:
    """The facts of a split without duplicates, a block per arity in the order of their rows, and the duplicates."""
    blocks, repeated, reordered = {}, 0, 0
    for block, facts in encode_blocks(labels, names, entities, relations):
        kept, dropped, same = _drop_duplicates(
            facts, block.arrangement, len(relations), len(entities)
        )
        blocks[facts.arity] = kept
        repeated += same
        reordered += dropped - same
    return MappingProxyType(dict(sorted(blocks.items()))), Duplicates(repeated, reordered)


def _drop_duplicates(
    facts: Facts, arrangement: Ids, n_relations: int, n_entities: int
) -> tuple[Facts, int, int]:
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

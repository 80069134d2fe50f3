"""How much of a split could be answered by looking into train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from getd.arrays import Bools, Ids
from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.row_index import RowIndex


@dataclass(frozen=True)
class Leakage:
    """What a split shares with train; shares are between 0 and 1.

    A question is a fact of the split with one position open.
    """

    split: str
    questions: int
    key_seen: float  # questions that train answers too: same relation, same entities in all other positions
    key_seen_by_position: tuple[
        float, ...
    ]  # the same for each position, over the facts that have it
    all_but_one: float  # facts that share relation and all entities but one, in their places, with a training fact
    all_but_two: float  # … all entities but two
    same_entities: (
        float  # facts whose entities are those of a training fact, in any order, of any relation
    )
    unseen_entity_facts: float  # facts with an entity that train has not


def leakage(kb: KnowledgeBase, split: str) -> Leakage:
    """Measure what a split shares with train."""
    train, blocks = kb.split("train"), kb.split(split)
    seen_by_position: dict[int, list[Bools]] = {}
    one: list[Bools] = []
    two: list[Bools] = []
    same: list[Bools] = []
    unseen: list[Bools] = []
    in_train = np.zeros(kb.n_entities, dtype=bool)
    for facts in train.values():
        in_train[facts.entities] = True
    for facts in blocks.values():
        shared = _shares_all_but_one(train, facts)
        for position, seen in enumerate(shared):
            seen_by_position.setdefault(position, []).append(seen)
        one.append(np.asarray(np.stack(shared).any(axis=0)))
        two.append(_shares_all_but_two(train, facts, one[-1]))
        same.append(_same_entities(train, facts, kb.n_entities))
        unseen.append(np.asarray((~in_train[facts.entities]).any(axis=1)))
    by_position = [
        np.concatenate(seen_by_position[position]) for position in sorted(seen_by_position)
    ]
    return Leakage(
        split=split,
        questions=sum(len(seen) for seen in by_position),
        key_seen=_share(by_position),
        key_seen_by_position=tuple(_share([seen]) for seen in by_position),
        all_but_one=_share(one),
        all_but_two=_share(two),
        same_entities=_share(same),
        unseen_entity_facts=_share(unseen),
    )


def _share(masks: Sequence[Bools]) -> float:
    return float(np.concatenate(masks).mean())


@dataclass(frozen=True)
class _Together:
    """Training facts and facts of the split one under the other, so that equal parts get equal numbers."""

    columns: tuple[Ids, ...]  # relation and entities
    n_train: int

    @classmethod
    def of(cls, train: Facts, facts: Facts) -> _Together:
        both = zip(
            [train.relation, *train.entities.T], [facts.relation, *facts.entities.T], strict=True
        )
        return cls(tuple(np.concatenate(pair) for pair in both), len(train))

    @cached_property
    def ends(self) -> list[Ids]:
        """For each position the number of what stands after it."""
        numbers = [np.zeros(len(self.columns[0]), dtype=np.int64)]
        for column in self.columns[:1:-1]:
            numbers.append(_numbered(numbers[-1], column))
        return numbers[::-1]

    def seen(self, before: Ids, after: Ids) -> Bools:
        """Which facts of the split have both numbers in common with some training fact."""
        numbers = _numbered(before, after)
        in_train = np.zeros(len(numbers), dtype=bool)
        in_train[numbers[: self.n_train]] = True
        return in_train[numbers[self.n_train :]]


def _numbered(first: Ids, second: Ids) -> Ids:
    """Equal pairs get equal numbers, from 0."""
    _, numbers = np.unique(first * (1 + int(second.max(initial=0))) + second, return_inverse=True)
    pairs: Ids = numbers.reshape(-1)
    return pairs


def _shares_all_but_one(train: Blocks, facts: Facts) -> list[Bools]:
    """For each position, which facts agree with some training fact in the relation and in every other position.

    What stands before the position has a number, and what stands after it: so the work grows with the arity alone.
    """
    if facts.arity not in train:
        return [np.zeros(len(facts), dtype=bool) for _ in range(facts.arity)]
    together = _Together.of(train[facts.arity], facts)
    before, shared = together.columns[0], []
    for column, after in zip(together.columns[1:], together.ends, strict=True):
        shared.append(together.seen(before, after))
        before = _numbered(before, column)
    return shared


def _shares_all_but_two(train: Blocks, facts: Facts, found: Bools) -> Bools:
    """Which facts agree with some training fact in all but two positions, beside those found already."""
    rest = np.flatnonzero(~found)
    if facts.arity not in train or len(rest) == 0:
        return found
    found = found.copy()
    known, facts = train[facts.arity], facts.take(rest)
    n_pairs = facts.arity * (facts.arity - 1) // 2
    if len(facts) * len(known) < n_pairs * (len(facts) + len(known)):
        found[rest] = _differ_in_two(known, facts)
        return found
    together = _Together.of(known, facts)
    before = together.columns[0]
    for first in range(facts.arity):
        between = before  # and on, without the first
        for column, after in zip(
            together.columns[first + 2 :], together.ends[first + 1 :], strict=True
        ):
            found[rest] |= together.seen(between, after)
            between = _numbered(between, column)
        before = _numbered(before, together.columns[first + 1])
    return found


def _differ_in_two(train: Facts, facts: Facts) -> Bools:
    """The same for few facts of many entities, fact by fact."""
    different = [
        (train.entities != entities).sum(axis=1) + 3 * (train.relation != relation)
        for relation, entities in zip(facts.relation, facts.entities, strict=True)
    ]
    return np.array([bool((number <= 2).any()) for number in different])


def _same_entities(train: Blocks, facts: Facts, n_entities: int) -> Bools:
    if facts.arity not in train:
        return np.zeros(len(facts), dtype=bool)
    index, _ = RowIndex.build(
        list(np.sort(train[facts.arity].entities, axis=1).T), [n_entities] * facts.arity
    )
    return index.find(list(np.sort(facts.entities, axis=1).T)) >= 0

"""How much of a split could be answered by looking into train."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from getd.arrays import Bools, Ids, mark
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.row_index import RowIndex

_Masks = list[Bools]


@dataclass(frozen=True)
class Leakage:
    """What a split shares with train; shares are between 0 and 1."""

    split: str
    questions: int
    key_seen: float  # questions that train answers too: same relation, same other entities
    key_seen_by_position: tuple[float, ...]  # the same for each position, over facts that have it
    all_but_one: float  # facts that equal a training fact in relation and all positions but one
    all_but_two: float  # … in all positions but two
    same_entities: float  # facts with the entities of a training fact, in any order, any relation
    unseen_entity_facts: float  # facts with an entity that train does not have


def leakage(kb: KnowledgeBase, split: str) -> Leakage:
    train = kb.split("train")
    in_train = mark(kb.n_entities, (facts.entities for facts in train.values()))

    seen_by_position: dict[int, _Masks] = {}
    one: _Masks = []
    two: _Masks = []
    same: _Masks = []
    unseen: _Masks = []
    for arity, facts in kb.split(split).items():
        known = train.get(arity, facts.take(slice(0)))
        shared = _shares_all_but_one(known, facts)
        for position, seen in enumerate(shared):
            seen_by_position.setdefault(position, []).append(seen)
        one.append(np.logical_or.reduce(shared))
        two.append(_shares_all_but_two(known, facts, one[-1]))
        same.append(_same_entities(known, facts))
        unseen.append(np.logical_or.reduce(~in_train[facts.entities], axis=1))

    by_position = [np.concatenate(seen) for _, seen in sorted(seen_by_position.items())]
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


def _share(masks: _Masks) -> float:
    return float(np.concatenate(masks).mean())


@dataclass(frozen=True)
class _Together:
    """Training facts and facts of the split in one table, so that equal parts get equal numbers."""

    columns: tuple[Ids, ...]  # relation and entities, first those of train
    n_train: int

    @classmethod
    def of(cls, train: Facts, facts: Facts) -> Self:
        pairs = zip(train.columns(), facts.columns(), strict=True)
        return cls(tuple(map(np.concatenate, pairs)), len(train))

    @cached_property
    def after(self) -> list[Ids]:
        """For each position, a number for the entities after it."""
        numbers = [np.zeros_like(self.columns[0])]
        for column in self.columns[:1:-1]:
            numbers.append(_number_pairs(numbers[-1], column))
        return numbers[::-1]

    def seen(self, before: Ids, after: Ids) -> Bools:
        """Which facts of the split agree in both numbers with some training fact."""
        numbers = _number_pairs(before, after)
        in_train = mark(len(numbers), [numbers[: self.n_train]])
        return in_train[numbers[self.n_train :]]


def _number_pairs(first: Ids, second: Ids) -> Ids:
    """Number pairs from 0; equal pairs get equal numbers."""
    keys = first * (1 + int(second.max(initial=0))) + second
    numbers: Ids = np.unique(keys, return_inverse=True)[1]
    return numbers


def _shares_all_but_one(known: Facts, facts: Facts) -> _Masks:
    """For each position, which facts agree with a training fact in everything else.

    The parts before and after the position have a number each, so the work is linear in the arity.
    """
    together = _Together.of(known, facts)
    before = together.columns[0]
    shared = []
    for column, after in zip(together.columns[1:], together.after, strict=True):
        shared.append(together.seen(before, after))
        before = _number_pairs(before, column)
    return shared


def _shares_all_but_two(known: Facts, facts: Facts, share_all_but_one: Bools) -> Bools:
    """Which facts agree with some training fact in the relation and all positions but two."""
    rest = np.flatnonzero(~share_all_but_one)
    shared = share_all_but_one.copy()
    facts = facts.take(rest)

    # Few facts of many entities are compared one by one.
    n_pairs = facts.arity * (facts.arity - 1) // 2
    if len(facts) * len(known) < n_pairs * (len(facts) + len(known)):
        for i, relation, entities in zip(rest, facts.relation, facts.entities, strict=True):
            same_relation = known.entities[known.relation == relation]
            shared[i] = ((same_relation != entities).sum(axis=1) <= 2).any()
        return shared

    together = _Together.of(known, facts)
    before = together.columns[0]
    for first in range(facts.arity):
        # What lies before the second open position, without the first.
        between = before
        later = zip(together.columns[first + 2 :], together.after[first + 1 :], strict=True)
        for column, after in later:
            shared[rest] |= together.seen(between, after)
            between = _number_pairs(between, column)
        before = _number_pairs(before, together.columns[first + 1])
    return shared


def _same_entities(known: Facts, facts: Facts) -> Bools:
    """Which facts have the entities of some training fact, in any order."""
    rows = np.sort(known.entities, axis=1)
    index, _ = RowIndex.build(list(rows.T))
    return index.find(list(np.sort(facts.entities, axis=1).T)) >= 0

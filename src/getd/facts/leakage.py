"""How much of a split could be answered by looking into train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.row_index import RowIndex

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Leakage:
    """What a split shares with train; shares are between 0 and 1.

    A question is a fact of the split with one position open.
    """

    split: str
    questions: int
    key_seen: float  # questions that train answers too: same relation, same entities in all other positions
    key_seen_by_position: tuple[float, ...]  # the same for each position, over the facts that have it
    all_but_one: float  # facts that share relation and all entities but one, in their places, with a training fact
    all_but_two: float  # … all entities but two
    same_entities: float  # facts whose entities are those of a training fact, in any order, of any relation
    unseen_entity_facts: float  # facts with an entity that train has not


def leakage(kb: KnowledgeBase, split: str) -> Leakage:
    """Measure what a split shares with train."""
    train, blocks = kb.split("train"), kb.split(split)
    sizes = (kb.n_relations, kb.n_entities)
    seen_by_position: dict[int, list[Mask]] = {}
    one: list[Mask] = []
    two: list[Mask] = []
    same: list[Mask] = []
    unseen: list[Mask] = []
    in_train = np.zeros(kb.n_entities, dtype=bool)
    for facts in train.values():
        in_train[facts.entities] = True
    for arity, facts in blocks.items():
        found: list[Mask] = [_shares(train, facts, (position,), sizes) for position in range(arity)]
        for position, seen in enumerate(found):
            seen_by_position.setdefault(position, []).append(seen)
        one.append(np.asarray(np.stack(found).any(axis=0)))
        two.append(_shares_all_but_two(train, facts, one[-1], sizes))
        same.append(_same_entities(train, facts, kb.n_entities))
        unseen.append(np.asarray((~in_train[facts.entities]).any(axis=1)))
    by_position = [np.concatenate(seen_by_position[position]) for position in sorted(seen_by_position)]
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


def _share(masks: Sequence[Mask]) -> float:
    return float(np.concatenate(masks).mean())


def _shares(train: Blocks, facts: Facts, left_out: tuple[int, ...], sizes: tuple[int, int]) -> Mask:
    """Which facts agree with some training fact in the relation and in every position but these."""
    if facts.arity not in train:
        return np.zeros(len(facts), dtype=bool)
    kept = [j for j in range(facts.arity) if j not in left_out]
    index, _ = RowIndex.build(_columns(train[facts.arity], kept), [sizes[0]] + [sizes[1]] * len(kept))
    return index.find(_columns(facts, kept)) >= 0


def _shares_all_but_two(train: Blocks, facts: Facts, found: Mask, sizes: tuple[int, int]) -> Mask:
    found = found.copy()
    n_pairs = facts.arity * (facts.arity - 1) // 2
    if facts.arity in train and len(facts) * len(train[facts.arity]) < n_pairs * (len(facts) + len(train[facts.arity])):
        return found | _differ_in_two(train[facts.arity], facts)
    for pair in combinations(range(facts.arity), 2):
        rest = np.flatnonzero(~found)
        if len(rest):
            found[rest] = _shares(train, facts.take(rest), pair, sizes)
    return found


def _differ_in_two(train: Facts, facts: Facts) -> Mask:
    """The same for few facts of many entities, fact by fact."""
    different = [
        (train.entities != entities).sum(axis=1) + 3 * (train.relation != relation)
        for relation, entities in zip(facts.relation, facts.entities, strict=True)
    ]
    return np.array([bool((number <= 2).any()) for number in different])


def _same_entities(train: Blocks, facts: Facts, n_entities: int) -> Mask:
    if facts.arity not in train:
        return np.zeros(len(facts), dtype=bool)
    index, _ = RowIndex.build(list(np.sort(train[facts.arity].entities, axis=1).T), [n_entities] * facts.arity)
    return index.find(list(np.sort(facts.entities, axis=1).T)) >= 0


def _columns(facts: Facts, positions: Sequence[int]) -> list[Ids]:
    return [facts.relation, *(facts.entities[:, j] for j in positions)]

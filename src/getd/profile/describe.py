"""An honest report about a knowledge base: what it holds, what is doubtful, what leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from getd.arrays import Bools, Ids
from getd.facts.facts import Blocks, count
from getd.facts.knowledge_base import KnowledgeBase, overlap
from getd.facts.split import SPLITS
from getd.profile.leakage import Leakage, leakage
from getd.profile.literals import dates, numbers


@dataclass(frozen=True)
class SplitReport:
    """One split."""

    facts: int
    arities: dict[int, int]  # facts by arity
    entities: int
    relations: int
    duplicates: int  # dropped: all that stood more than once
    reordered_duplicates: int  # of these, alike only once qualifiers stand in canonical order
    unseen_entities: int | None  # entities that train has not; None without train
    unseen_relations: int | None
    literal_facts: float  # share of facts that hold a date or a number


@dataclass(frozen=True)
class ArityReport:
    """The facts of one arity over all splits."""

    facts: int
    relations: int
    entities: int
    density: (
        float  # facts over all that could be made of the entities each role of each relation has
    )


@dataclass(frozen=True)
class RelationReport:
    """One relation over all splits."""

    arity: int
    facts: dict[str, int]  # by split
    roles: tuple[tuple[str, int], ...]  # each role and how many entities fill it
    density: float  # facts over the product of these


@dataclass(frozen=True)
class Report:
    """What :func:`describe` finds."""

    name: str
    entities: int
    relations: int
    relation_names: int  # fewer than relations where a name has several role signatures
    splits: dict[str, SplitReport]
    arities: dict[int, ArityReport]
    by_relation: dict[str, RelationReport]
    duplicates: int
    reordered_duplicates: int
    overlap: dict[str, int]  # "train/test": facts that both have
    literals: dict[str, float]  # shares of the entities that read as dates, as numbers
    leakage: Leakage | None  # of test, or valid where there is no test; None without train
    notices: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: keys are text."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def describe(kb: KnowledgeBase) -> Report:
    """Report about a knowledge base."""
    date, number = dates(kb.entities), numbers(kb.entities)
    by_relation = _relations(kb)
    measured = next((split for split in ("test", "valid") if count(kb.splits.get(split, {}))), None)
    return Report(
        name=kb.name,
        entities=kb.n_entities,
        relations=kb.n_relations,
        relation_names=len({relation.name for relation in kb.signatures}),
        splits={split: _split(kb, split, date | number) for split in kb.splits},
        arities={arity: _arity(kb, arity, by_relation) for arity in kb.arities},
        by_relation=by_relation,
        duplicates=sum(found.total for found in kb.duplicates.values()),
        reordered_duplicates=sum(found.reordered for found in kb.duplicates.values()),
        overlap={
            f"{a}/{b}": overlap(kb, a, b)
            for a in kb.splits
            for b in kb.splits
            if SPLITS.index(a) < SPLITS.index(b)
        },
        literals={"dates": float(date.mean()), "numbers": float(number.mean())},
        leakage=leakage(kb, measured) if measured and "train" in kb.splits else None,
        notices=kb.notices,
    )


def _split(kb: KnowledgeBase, split: str, literal: Bools) -> SplitReport:
    blocks, train = kb.splits[split], kb.splits.get("train")
    entities, relations = _used(kb, blocks)
    seen = _used(kb, train) if train is not None else None
    with_literal = sum(int(literal[facts.entities].any(axis=1).sum()) for facts in blocks.values())
    return SplitReport(
        facts=count(blocks),
        arities={arity: len(facts) for arity, facts in blocks.items()},
        entities=int(entities.sum()),
        relations=int(relations.sum()),
        duplicates=kb.duplicates[split].total,
        reordered_duplicates=kb.duplicates[split].reordered,
        unseen_entities=None if seen is None else int((entities & ~seen[0]).sum()),
        unseen_relations=None if seen is None else int((relations & ~seen[1]).sum()),
        literal_facts=with_literal / count(blocks),
    )


def _used(kb: KnowledgeBase, blocks: Blocks) -> tuple[Bools, Bools]:
    entities, relations = np.zeros(kb.n_entities, dtype=bool), np.zeros(kb.n_relations, dtype=bool)
    for facts in blocks.values():
        entities[facts.entities], relations[facts.relation] = True, True
    return entities, relations


def _arity(kb: KnowledgeBase, arity: int, by_relation: Mapping[str, RelationReport]) -> ArityReport:
    blocks = [blocks[arity] for blocks in kb.splits.values() if arity in blocks]
    relations = [relation for relation in by_relation.values() if relation.arity == arity]
    room = sum(_room(relation.roles) for relation in relations)
    n_facts = sum(map(len, blocks))
    n_entities = len(np.unique(np.concatenate([facts.entities.ravel() for facts in blocks])))
    return ArityReport(
        facts=n_facts, relations=len(relations), entities=n_entities, density=n_facts / room
    )


def _relations(kb: KnowledgeBase) -> dict[str, RelationReport]:
    found: dict[int, RelationReport] = {}
    for arity in kb.arities:
        blocks = {split: blocks[arity] for split, blocks in kb.splits.items() if arity in blocks}
        relations, which = np.unique(
            np.concatenate([facts.relation for facts in blocks.values()]), return_inverse=True
        )
        parts = np.split(
            which.reshape(-1), np.cumsum([len(facts) for facts in blocks.values()])[:-1]
        )
        counts = {
            split: np.bincount(part, minlength=len(relations)).tolist()
            for split, part in zip(blocks, parts, strict=True)
        }
        entities = np.concatenate([facts.entities for facts in blocks.values()])
        fillers = np.stack(
            [_distinct(which.reshape(-1), column, len(relations)) for column in entities.T]
        )
        for number, relation in enumerate(relations.tolist()):
            roles = tuple(
                zip(kb.signatures[relation].roles, fillers[:, number].tolist(), strict=True)
            )
            facts = {split: counted[number] for split, counted in counts.items()}
            density = sum(facts.values()) / _room(roles)
            found[relation] = RelationReport(arity=arity, facts=facts, roles=roles, density=density)
    names = list(kb.relations)
    return {names[relation]: found[relation] for relation in sorted(found)}


def _distinct(relations: Ids, entities: Ids, n_relations: int) -> Ids:
    """How many entities each relation has at a position, ``(n_relations,)``."""
    size = 1 + int(entities.max())
    return np.bincount(np.unique(relations * size + entities) // size, minlength=n_relations)


def _room(roles: tuple[tuple[str, int], ...]) -> float:
    return math.prod(float(number) for _, number in roles)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value

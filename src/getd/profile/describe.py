"""A profile of a knowledge base: what it holds, what is doubtful, what leaks."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from getd.arrays import Bools, mark
from getd.facts.columns import numbered
from getd.facts.facts import Blocks, Facts, count, join
from getd.facts.knowledge_base import KnowledgeBase, overlap
from getd.facts.split import SPLITS
from getd.profile.leakage import Leakage, leakage
from getd.profile.literals import dates, numbers


@dataclass(frozen=True)
class SplitReport:
    facts: int
    arities: dict[int, int]  # facts by arity
    entities: int
    relations: int
    duplicates: int  # repeated facts that were dropped
    reordered_duplicates: int  # of these, with their qualifiers in another order
    unseen_entities: int | None  # entities that train does not have; None without train
    unseen_relations: int | None
    literal_facts: float  # share of facts with a date or a number


@dataclass(frozen=True)
class ArityReport:
    """The facts of one arity over all splits."""

    facts: int
    relations: int
    entities: int
    density: float  # facts over all combinations of the entities of each role, by relation


@dataclass(frozen=True)
class RelationReport:
    """One relation over all splits."""

    arity: int
    facts: dict[str, int]  # by split
    roles: tuple[tuple[str, int], ...]  # each role and the number of entities that fill it
    density: float  # facts over the product of these


@dataclass(frozen=True)
class Report:
    """The result of :func:`describe`."""

    name: str
    entities: int
    relations: int
    relation_names: int  # fewer than relations if a name has several role signatures
    splits: dict[str, SplitReport]
    arities: dict[int, ArityReport]
    by_relation: dict[str, RelationReport]
    duplicates: int
    reordered_duplicates: int
    overlap: dict[str, int]  # "train/test": facts that both have
    literals: dict[str, float]  # shares of the entities that read as dates, as numbers
    leakage: Leakage | None  # of test, or of valid if there is no test; None without train
    notices: tuple[str, ...]
    baselines: dict[str, dict[str, Any]] | None = None  # metrics on test; None: not measured

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: keys are text."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        if self.baselines is None:
            del plain["baselines"]
        return plain


def describe(kb: KnowledgeBase) -> Report:
    is_date = dates(kb.entities)
    is_number = numbers(kb.entities)
    is_literal = is_date | is_number
    all_facts = join(*kb.splits.values())
    by_relation = _describe_relations(kb, all_facts)

    shared = {}
    for first, second in combinations(SPLITS, 2):
        if first in kb.splits and second in kb.splits:
            shared[f"{first}/{second}"] = overlap(kb, first, second)
    held_out = [split for split in ("test", "valid") if count(kb.splits.get(split, {}))]
    return Report(
        name=kb.name,
        entities=kb.n_entities,
        relations=kb.n_relations,
        relation_names=len(kb.relations_named),
        splits={split: _describe_split(kb, split, is_literal) for split in kb.splits},
        arities={arity: _describe_arity(all_facts[arity], by_relation) for arity in all_facts},
        by_relation=by_relation,
        duplicates=sum(dropped.total for dropped in kb.duplicates.values()),
        reordered_duplicates=sum(dropped.reordered for dropped in kb.duplicates.values()),
        overlap=shared,
        literals={"dates": float(is_date.mean()), "numbers": float(is_number.mean())},
        leakage=leakage(kb, held_out[0]) if held_out and "train" in kb.splits else None,
        notices=kb.notices,
    )


def _describe_split(kb: KnowledgeBase, split: str, is_literal: Bools) -> SplitReport:
    blocks = kb.splits[split]
    entities, relations = _used(kb, blocks)
    unseen_entities = None
    unseen_relations = None
    if "train" in kb.splits:
        seen_entities, seen_relations = _used(kb, kb.splits["train"])
        unseen_entities = int((entities & ~seen_entities).sum())
        unseen_relations = int((relations & ~seen_relations).sum())

    n_literal = 0
    for facts in blocks.values():
        n_literal += int(is_literal[facts.entities].any(axis=1).sum())
    return SplitReport(
        facts=count(blocks),
        arities={arity: len(facts) for arity, facts in blocks.items()},
        entities=int(entities.sum()),
        relations=int(relations.sum()),
        duplicates=kb.duplicates[split].total,
        reordered_duplicates=kb.duplicates[split].reordered,
        unseen_entities=unseen_entities,
        unseen_relations=unseen_relations,
        literal_facts=n_literal / count(blocks),
    )


def _used(kb: KnowledgeBase, blocks: Blocks) -> tuple[Bools, Bools]:
    """Which entities and which relations some facts use."""
    entities = mark(kb.n_entities, (facts.entities for facts in blocks.values()))
    return entities, mark(kb.n_relations, (facts.relation for facts in blocks.values()))


def _describe_arity(facts: Facts, by_relation: Mapping[str, RelationReport]) -> ArityReport:
    relations = [relation for relation in by_relation.values() if relation.arity == facts.arity]
    n_possible = sum(_count_possible(relation.roles) for relation in relations)
    return ArityReport(
        facts=len(facts),
        relations=len(relations),
        entities=len(np.unique(facts.entities)),
        density=len(facts) / n_possible,
    )


def _describe_relations(kb: KnowledgeBase, all_facts: Blocks) -> dict[str, RelationReport]:
    """Describe each relation, by its label, in the order of the ids."""
    reports: dict[int, RelationReport] = {}
    for arity, facts in all_facts.items():
        counts = {}
        for split, blocks in kb.splits.items():
            if arity in blocks:
                counts[split] = np.bincount(blocks[arity].relation, minlength=kb.n_relations)

        table = numbered(map(pl.Series, facts.columns()))  # the relation is column 0
        for relation, *n_entities in table.group_by("0").agg(pl.all().n_unique()).iter_rows():
            roles = tuple(zip(kb.signatures[relation].roles, n_entities, strict=True))
            by_split = {split: int(number[relation]) for split, number in counts.items()}
            density = sum(by_split.values()) / _count_possible(roles)
            reports[relation] = RelationReport(arity, by_split, roles, density)

    return {kb.relations[relation]: reports[relation] for relation in sorted(reports)}


def _count_possible(roles: tuple[tuple[str, int], ...]) -> float:
    """The number of facts that the entities of each role could make."""
    return math.prod(float(number) for _, number in roles)

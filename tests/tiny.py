"""Small knowledge bases and models for tests."""

from __future__ import annotations

from operator import itemgetter

import torch

from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.named import NamedFacts
from getd.models.base import ModelSizes
from getd.models.getd import GETD, GETDSettings


def tiny_knowledge_base() -> KnowledgeBase:
    """120 facts of two and three entities, a tenth of them valid and a tenth test."""
    splits: dict[str, list[tuple[str, ...]]] = {"train": [], "valid": [], "test": []}
    for number in range(60):
        split = {8: "valid", 9: "test"}.get(number % 10, "train")
        splits[split].append(("plays for", f"player {number % 13}", f"club {number % 11}"))
        splits[split].append(
            ("award", f"player {number % 7}", f"club {number % 11}", f"year {number % 6}")
        )
    return KnowledgeBase.from_facts(splits, name="tiny")


def all_facts(kb: KnowledgeBase) -> list[tuple[str, ...]]:
    """The facts of all splits, by name."""
    blocks = [block for split in kb.splits.values() for block in split.values()]
    return [fact for block in blocks for fact in kb.decode(block)]


def rows_of(named: NamedFacts) -> list[tuple[str, ...]]:
    """Every fact as ``(relation, entity, …)``, in the order of the rows."""
    return [fact for _, _, fact in sorted(named.facts(), key=itemgetter(0))]


def untrained_getd(kb: KnowledgeBase) -> GETD:
    """A small GETD with random weights."""
    sizes = ModelSizes(kb.n_entities, kb.n_relations, kb.arities)
    settings = GETDSettings(entity_dim=6, ring_ranks=3, initial_scale=1.0)
    return GETD(sizes, settings, torch.Generator().manual_seed(0)).eval()

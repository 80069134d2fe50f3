"""A knowledge base that is trained in a moment."""

from __future__ import annotations

from getd.facts.knowledge_base import KnowledgeBase


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

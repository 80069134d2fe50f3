"""What a model must know of a knowledge base: how many of what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation


def sizes(kb: KnowledgeBase) -> dict[str, Any]:
    """What a model must know of a knowledge base."""
    found: dict[str, Any] = {
        "n_entities": kb.n_entities,
        "n_relations": kb.n_relations,
        "arities": list(kb.arities),
    }
    if any(signature.has_named_roles for signature in kb.signatures):
        found["roles"] = role_numbers(kb.signatures)
    return found


def role_numbers(signatures: Sequence[Relation]) -> list[list[int]]:
    """A number for the role at each position of each relation; one name is one role, whatever the relation.

    >>> role_numbers([Relation("bought", ("who", "what")), Relation("sold", ("what", "who")), Relation("r", ("e1",))])
    [[0, 1], [1, 0], [2]]
    """
    numbers: dict[object, int] = {}
    return [
        [
            numbers.setdefault(role if relation.has_named_roles else (place, role), len(numbers))
            for role in relation.roles
        ]
        for place, relation in enumerate(signatures)
    ]

"""The sizes of a knowledge base, which a model is made for."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation
from getd.models.base import ModelSizes


def model_sizes(kb: KnowledgeBase) -> ModelSizes:
    """Return what a model must know of a knowledge base."""
    has_roles = any(relation.has_named_roles for relation in kb.signatures)
    roles = number_roles(kb.signatures) if has_roles else None
    names = number_names(kb.signatures)
    return ModelSizes(kb.n_entities, kb.n_relations, list(kb.arities), roles, names)


def sizes_record(sizes: ModelSizes) -> dict[str, Any]:
    """Return the JSON form, for ``model.json``; without what the data does not have."""
    return {key: value for key, value in asdict(sizes).items() if value is not None}


def number_roles(relations: Sequence[Relation]) -> list[list[int]]:
    """Number the role at each position of each relation; one name is one role in all relations.

    >>> buy = Relation("bought", ("who", "what"))
    >>> sell = Relation("sold", ("what", "who"))
    >>> number_roles([buy, sell, Relation("r", ("e1",))])
    [[0, 1], [1, 0], [2]]
    """
    number_of: dict[object, int] = {}
    rows = []
    for relation_id, relation in enumerate(relations):
        row = []
        for role in relation.roles:
            key = role if relation.has_named_roles else (relation_id, role)
            row.append(number_of.setdefault(key, len(number_of)))
        rows.append(row)
    return rows


def number_names(relations: Sequence[Relation]) -> list[int] | None:
    """Number the name of each relation; None if no two relations have the same.

    >>> worked = Relation("worked", ("who", "where"))
    >>> number_names([worked, Relation("lived", ("who",)), Relation("worked", ("who",))])
    [0, 1, 0]
    """
    number_of: dict[str, int] = {}
    numbers = [number_of.setdefault(relation.name, len(number_of)) for relation in relations]
    return numbers if len(number_of) < len(relations) else None

"""A question as a person writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from getd.errors import FactError, nearest
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase

OPEN = "?"


@dataclass(frozen=True)
class Question:
    """One fact with an open slot: ``position`` is the open position, ``None`` the relation."""

    fact: Facts  # one row; what stands in the open slot is never read
    position: int | None
    text: tuple[str, ...]  # as it was asked: relation, then entities in order


def parse_question(kb: KnowledgeBase, relation: str, entities: Sequence[str] | Mapping[str, str]) -> Question:
    """Understand a question: ``?`` is what is asked for; entities in order, or by role.

    Raises
    ------
    FactError
        For names that the knowledge base has not (with the nearest), and for anything but one open slot.
    """
    if isinstance(entities, Mapping):
        number, names = _by_role(kb, relation, entities)
    else:
        number, names = (-1 if relation == OPEN else _relation(kb, relation, len(entities))), list(entities)
    asked = [relation, *names]
    if asked.count(OPEN) != 1:
        raise FactError(f"expected one '?' in a question, found {asked.count(OPEN)} in {' '.join(asked)}")
    position = asked.index(OPEN) - 1
    ids = [0 if name == OPEN else _entity(kb, name) for name in names]
    fact = Facts(np.array([max(number, 0)]), np.array([ids], dtype=np.int64).reshape(1, len(ids)))
    return Question(fact, None if position < 0 else position, tuple(asked))


def _relation(kb: KnowledgeBase, name: str, arity: int) -> int:
    """The relation of that label, or of that name and arity."""
    if name in kb.relations and kb.signatures[kb.relations.id(name)].arity == arity:
        return kb.relations.id(name)
    found = [number for number, relation in enumerate(kb.signatures) if relation.name == name]
    fitting = [number for number in found if kb.signatures[number].arity == arity]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        labels = ", ".join(kb.relations[number] for number in fitting)
        raise FactError(f"relation {name!r} is one of {labels} here; ask by one of these names")
    if name in kb.relations:
        found = [kb.relations.id(name)]
    if found:
        arities = sorted({kb.signatures[number].arity for number in found})
        raise FactError(f"relation {name!r} has {' or '.join(map(str, arities))} entities, found {arity}")
    known = sorted({relation.name for relation in kb.signatures})
    raise FactError(f"unknown relation {name!r}{nearest(name, known)}")


def _by_role(kb: KnowledgeBase, relation: str, entities: Mapping[str, str]) -> tuple[int, list[str]]:
    named = [n for n, found in enumerate(kb.signatures) if relation in (found.name, kb.relations[n])]
    if not named:
        raise FactError(f"unknown relation {relation!r}{nearest(relation, sorted({r.name for r in kb.signatures}))}")
    for number in named:
        roles = kb.signatures[number].roles
        if sorted(roles) == sorted(entities):
            return number, [entities[role] for role in roles]
    roles = kb.signatures[named[0]].roles
    unknown = next((role for role in entities if role not in roles), None)
    hint = nearest(unknown, roles) if unknown else ""
    raise FactError(f"relation {relation!r} has the roles {', '.join(roles)}, found {', '.join(entities)}{hint}")


def _entity(kb: KnowledgeBase, name: str) -> int:
    if name in kb.entities:
        return kb.entities.id(name)
    raise FactError(f"unknown entity {name!r}{nearest(name, kb.entities.names.to_list())}")

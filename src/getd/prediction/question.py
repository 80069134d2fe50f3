"""A question as a person writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from getd.errors import FactError, UnknownName, nearest
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase

Names = (
    Sequence[str] | Mapping[str, str | Sequence[str]]
)  # in order; by role, several where a role stands so often
OPEN = "?"
MOST_OPEN = 3


@dataclass(frozen=True)
class Question:
    """One fact with open slots: some positions, or the relation alone."""

    fact: Facts  # one row; what stands in an open slot is never read
    open: tuple[int, ...]  # the open positions, ascending; none: the relation is open
    text: tuple[str, ...]  # as it was asked: relation, then entities in order

    @property
    def position(self) -> int | None:
        """The open position of a question with one; ``None``: the relation."""
        return self.open[0] if self.open else None


def parse_question(kb: KnowledgeBase, relation: str, entities: Names) -> Question:
    """Understand a question: ``?`` is what is asked for; entities in order, or by role.

    Raises
    ------
    FactError
        For names that the knowledge base has not (with the nearest), and where nothing is open, or too much.
    """
    if relation == OPEN and not isinstance(entities, Mapping):
        number, names = 0, list(entities)
        if len(names) not in kb.arities:
            arities = " or ".join(map(str, kb.arities))
            raise FactError(
                f"expected {arities} entities, as relations have here, found {len(names)}"
            )
    else:
        number, names = parse_names(kb, relation, entities)
    asked = (relation, *names)
    text, holes = (
        " ".join(asked),
        tuple(position for position, name in enumerate(names) if name == OPEN),
    )
    if OPEN not in asked:
        raise FactError(f"expected a '?' in a question, found none in {text}")
    if relation == OPEN and holes:
        raise FactError(f"expected '?' for the relation or for entities, found both in {text}")
    if len(holes) > MOST_OPEN:
        raise FactError(
            f"expected {MOST_OPEN} '?' at most in a question, found {len(holes)} in {text}"
        )
    return Question(_fact(kb, number, names), holes, asked)


def parse_fact(kb: KnowledgeBase, relation: str, entities: Names) -> Facts:
    """Understand a whole fact; entities in order, or by role."""
    number, names = parse_names(kb, relation, entities)
    return _fact(kb, number, names, may_be_open=False)


def parse_names(kb: KnowledgeBase, relation: str, entities: Names) -> tuple[int, list[str]]:
    """The relation's number and the names in order; entities may be new."""
    if relation == OPEN:
        raise FactError("expected the name of a relation, found '?'")
    if isinstance(entities, Mapping):
        return _by_role(kb, relation, entities)
    return _relation(kb, relation, len(entities)), list(entities)


def _fact(kb: KnowledgeBase, number: int, names: Sequence[str], may_be_open: bool = True) -> Facts:
    ids = [0 if may_be_open and name == OPEN else _entity(kb, name) for name in names]
    return Facts(np.array([number]), np.array([ids], dtype=np.int64).reshape(1, len(ids)))


def fill_question(kb: KnowledgeBase, question: Question, names: Sequence[str]) -> Facts:
    """The fact that these names make of a question: an entity for each open position, or a relation's label."""
    if len(names) != max(len(question.open), 1):
        raise FactError(
            f"expected {max(len(question.open), 1)} names for what is open, found {len(names)}"
        )
    if not question.open:
        return Facts(kb.relations.ids(names), question.fact.entities)
    entities = question.fact.entities.copy()
    entities[0, list(question.open)] = kb.entities.ids(names)
    return Facts(question.fact.relation, entities)


def find_relation(kb: KnowledgeBase, name: str) -> int:
    """The relation of a label, or of a name that only one relation has."""
    if name in kb.relations:
        return kb.relations.id(name)
    found = kb.relations_named.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        labels = ", ".join(kb.relations[number] for number in found)
        raise FactError(f"relation {name!r} is one of {labels} here; name one of these")
    raise UnknownName(f"unknown relation {name!r}", lambda: nearest(name, list(kb.relations)))


def _relation(kb: KnowledgeBase, name: str, arity: int) -> int:
    """The relation of that label, or of that name and arity."""
    if name in kb.relations and kb.signatures[kb.relations.id(name)].arity == arity:
        return kb.relations.id(name)
    found = kb.relations_named.get(name, [])
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
        raise FactError(
            f"relation {name!r} has {' or '.join(map(str, arities))} entities, found {arity}"
        )
    raise UnknownName(
        f"unknown relation {name!r}", lambda: nearest(name, sorted(kb.relations_named))
    )


def _by_role(
    kb: KnowledgeBase, relation: str, entities: Mapping[str, str | Sequence[str]]
) -> tuple[int, list[str]]:
    named = (
        [kb.relations.id(relation)]
        if relation in kb.relations
        else kb.relations_named.get(relation, [])
    )
    if not named:
        raise UnknownName(
            f"unknown relation {relation!r}", lambda: nearest(relation, sorted(kb.relations_named))
        )
    given = {
        role: [names] if isinstance(names, str) else list(names) for role, names in entities.items()
    }
    counted = {role: len(names) for role, names in given.items()}
    for number in named:
        roles = kb.signatures[number].roles
        if Counter(roles) == counted:
            left = {role: iter(names) for role, names in given.items()}
            return number, [next(left[role]) for role in roles]
    roles = kb.signatures[named[0]].roles
    unknown = next((role for role in entities if role not in roles), None)
    found = ", ".join(role for role, number in counted.items() for _ in range(number))
    hint = nearest(unknown, roles) if unknown else ""
    raise FactError(
        f"relation {relation!r} has the roles {', '.join(roles)}, found {found or 'none'}{hint}"
    )


def _entity(kb: KnowledgeBase, name: str) -> int:
    if name in kb.entities:
        return kb.entities.id(name)
    raise UnknownName(f"unknown entity {name!r}", lambda: kb.entities.hint(name))

"""A question as a person writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from getd.errors import FactError, nearest
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.parse import OPEN, Names, encode_fact, parse_names

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
    return Question(encode_fact(kb, number, names), holes, asked)


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


def positions_of(
    kb: KnowledgeBase, fact: Facts, positions: Iterable[int | str] | None
) -> list[int]:
    """Turn indexes and roles into positions of a fact; None: all of them."""
    if positions is None:
        return list(range(fact.arity))
    roles = kb.signatures[int(fact.relation[0])].roles

    columns = []
    for position in positions:
        if isinstance(position, str):
            if position not in roles:
                expected = f"expected one of the roles {', '.join(roles)}"
                raise FactError(f"{expected}, found {position!r}{nearest(position, roles)}")
            columns += [column for column, role in enumerate(roles) if role == position]
        elif 0 <= position < fact.arity:
            columns.append(position)
        else:
            raise FactError(f"expected a position below {fact.arity}, found {position}")
    return columns

"""A relation is a name together with its role signature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

Roles = tuple[str, ...]


@dataclass(frozen=True, order=True)
class Relation:
    """A name and the roles of its entities, in order; the same name with other roles is another relation.

    A role may stand more than once (a qualifier with several values).
    """

    name: str
    roles: Roles

    @property
    def arity(self) -> int:
        return len(self.roles)

    @property
    def has_named_roles(self) -> bool:
        return self.roles != default_roles(self.arity)


def default_roles(arity: int) -> Roles:
    """The roles of facts whose data names none: ``e1, e2, …``.

    >>> default_roles(3)
    ('e1', 'e2', 'e3')
    """
    return tuple(f"e{position + 1}" for position in range(arity))


def relation_labels(relations: Iterable[Relation]) -> dict[Relation, str]:
    """A text of its own for each relation: its name where that is unique, else name and roles.

    >>> moves = Relation("moves", ("who", "to"))
    >>> relation_labels([moves, Relation("moves", ("who", "from", "to")), Relation("wins", ("who", "what"))])[moves]
    'moves(who, to)'
    """
    relations = sorted(set(relations))
    spelt_out: set[Relation] = set()
    while True:
        labels = {
            relation: _spell_out(relation) if relation in spelt_out else relation.name
            for relation in relations
        }
        uses = Counter(labels.values())
        clashing = {relation for relation, label in labels.items() if uses[label] > 1} - spelt_out
        if not clashing:
            return labels
        spelt_out |= clashing


def _spell_out(relation: Relation) -> str:
    """Name and roles; what would make two relations look alike is escaped, so no two texts are equal."""
    name, *roles = (
        re.sub(r"([\\,()])", r"\\\1", text) for text in (relation.name, *relation.roles)
    )
    return f"{name}({', '.join(roles)})"

"""A relation is a name together with its role signature."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

Roles = tuple[str, ...]


@dataclass(frozen=True, order=True)
class Relation:
    """A name and the roles of its entities, in order; a name with other roles is another relation.

    A role may occur more than once (a qualifier with several values).
    """

    name: str
    roles: Roles

    @property
    def arity(self) -> int:
        """The number of roles."""
        return len(self.roles)

    @property
    def has_named_roles(self) -> bool:
        """Whether the data names the roles."""
        return self.roles != default_roles(self.arity)


def default_roles(arity: int) -> Roles:
    """The roles of facts whose data names none: ``e1, e2, …``.

    >>> default_roles(3)
    ('e1', 'e2', 'e3')
    """
    return tuple(f"e{position + 1}" for position in range(arity))


def relation_labels(relations: Iterable[Relation]) -> dict[Relation, str]:
    """Give each relation a label of its own: its name if that is unique, else name and roles.

    >>> moves = Relation("moves", ("who", "to"))
    >>> labels = relation_labels([moves, Relation("moves", ("who", "from", "to"))])
    >>> labels[moves]
    'moves(who, to)'
    """
    labels = {relation: relation.name for relation in sorted(set(relations))}

    # A spelt-out label may clash with another name, which is then spelt out too.
    spelt_out: set[Relation] = set()
    while True:
        uses = Counter(labels.values())
        clashing = {relation for relation, label in labels.items() if uses[label] > 1} - spelt_out
        if not clashing:
            return labels
        spelt_out |= clashing
        for relation in clashing:
            labels[relation] = _spell_out(relation)


def _spell_out(relation: Relation) -> str:
    """Name and roles; separators are escaped, so that no two relations have the same text."""
    texts = (relation.name, *relation.roles)
    name, *roles = (re.sub(r"([\\,()])", r"\\\1", text) for text in texts)
    return f"{name}({', '.join(roles)})"

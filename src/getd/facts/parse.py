"""A relation and its entities as a person writes them, to ids: entities in order, or by role."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import numpy as np

from getd.errors import FactError, UnknownName, nearest
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.named import NamedFacts
from getd.facts.relation import default_roles
from getd.io.problems import Problems

# In order, or by role; a role that a relation has several times has a list of names.
ByRole = Mapping[str, str | Sequence[str]]
Names = Sequence[str] | ByRole
Parsed = tuple[int, list[str]]  # the id of a relation, and names in the order of its roles
OPEN = "?"  # stands for what a question asks for
T = TypeVar("T")


def parse_names(kb: KnowledgeBase, relation: str, entities: Names) -> Parsed:
    """Find the relation's id and put the names in the order of its roles; entities may be new."""
    if relation == OPEN:
        raise FactError("expected the name of a relation, found '?'")
    if isinstance(entities, Mapping):
        return _parse_roles(kb, relation, entities)
    return _relation_of_arity(kb, relation, len(entities)), list(entities)


def parse_fact(kb: KnowledgeBase, relation: str, entities: Names) -> Facts:
    """Parse a whole fact, as a block of one row."""
    relation_id, names = parse_names(kb, relation, entities)
    return encode_fact(kb, relation_id, names, may_be_open=False)


def encode_fact(
    kb: KnowledgeBase, relation_id: int, names: Sequence[str], may_be_open: bool = True
) -> Facts:
    """Encode one fact as a block of one row; an open entity has the id 0, which nobody reads."""
    ids = []
    for name in names:
        is_open = may_be_open and name == OPEN
        number = 0 if is_open else kb.entities.find(name)
        if number is None:
            raise UnknownName(f"unknown entity {name!r}", partial(kb.entities.hint, name))
        ids.append(number)

    return Facts(np.array([relation_id]), np.array([ids]))


def parse_new_fact(kb: KnowledgeBase, relation: str, entities: Names) -> Parsed:
    """Parse a fact of a known relation, whose entities may be new."""
    relation_id, names = parse_names(kb, relation, entities)
    if OPEN in names and OPEN not in kb.entities:
        raise FactError("expected names, found '?'")
    return relation_id, names


def parse_each(path: Path, named: NamedFacts, parse: Callable[[str, Names], T]) -> list[T]:
    """Parse the facts of a file one by one, in the order of its lines; bad lines are one error."""
    problems = Problems(path)
    parsed: list[tuple[int, T]] = []
    for row, roles, (relation, *names) in named.facts():
        entities: Names = names
        if roles != default_roles(len(roles)):
            by_role: dict[str, list[str]] = {}
            for role, name in zip(roles, names, strict=True):
                by_role.setdefault(role, []).append(name)
            entities = by_role

        try:
            parsed.append((row, parse(relation, entities)))
        except FactError as error:
            problems.add(row, error)
    problems.check()
    return [item for _, item in sorted(parsed, key=itemgetter(0))]


def find_relation(kb: KnowledgeBase, name: str) -> int:
    """Find the relation with this label, or with this name if only one relation has it."""
    if name in kb.relations:
        return kb.relations.id(name)

    candidates = kb.relations_named.get(name, [])
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        labels = ", ".join(kb.relations.decode(candidates))
        raise FactError(f"relation {name!r} is one of {labels} here; name one of these")
    raise UnknownName(f"unknown relation {name!r}", lambda: nearest(name, list(kb.relations)))


def _relation_of_arity(kb: KnowledgeBase, name: str, arity: int) -> int:
    """Find the relation with this label, or with this name, among those of an arity."""
    groups = _relations_called(kb, name)
    for candidates in groups:
        fitting = [number for number in candidates if kb.signatures[number].arity == arity]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            labels = ", ".join(kb.relations.decode(fitting))
            raise FactError(f"relation {name!r} is one of {labels} here; ask by one of these names")

    arities = sorted({kb.signatures[number].arity for number in groups[0]})
    expected = " or ".join(map(str, arities))
    raise FactError(f"relation {name!r} has {expected} entities, found {arity}")


def _parse_roles(kb: KnowledgeBase, relation: str, entities: ByRole) -> Parsed:
    """Find the relation with this label or name, and with exactly these roles."""
    candidates = _relations_called(kb, relation)[0]
    counts = {}
    names_left = {}
    for role, given in entities.items():
        names = [given] if isinstance(given, str) else list(given)
        if not names:
            raise FactError(f"expected a name for the role {role!r}, found an empty list")
        counts[role] = len(names)
        names_left[role] = iter(names)
    for relation_id in candidates:
        roles = kb.signatures[relation_id].roles
        if Counter(roles) == counts:
            return relation_id, [next(names_left[role]) for role in roles]

    roles = kb.signatures[candidates[0]].roles
    unknown = next((role for role in entities if role not in roles), None)
    hint = nearest(unknown, roles) if unknown else ""
    listed = ", ".join(Counter(counts).elements()) or "none"
    raise FactError(f"relation {relation!r} has the roles {', '.join(roles)}, found {listed}{hint}")


def _relations_called(kb: KnowledgeBase, name: str) -> list[list[int]]:
    """The relation with this label, and those with this name; either may be missing."""
    labelled = [kb.relations.id(name)] if name in kb.relations else []
    groups = [labelled, kb.relations_named.get(name, [])]
    if not any(groups):
        known = kb.relations_named
        raise UnknownName(f"unknown relation {name!r}", lambda: nearest(name, sorted(known)))
    return [group for group in groups if group]

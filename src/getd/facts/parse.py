"""A relation and its entities as a person writes them, to ids: entities in order, or by role."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from getd.errors import FactError, UnknownName, nearest
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.named import NamedFacts, is_name
from getd.facts.relation import default_roles
from getd.io.problems import Problems
from getd.visible import shorten

# In order, or by role; a role that a relation has several times has a list of names.
Name = str | float  # numbers become text
ByRole = Mapping[str, Name | Sequence[Name]]
Names = Sequence[Name] | ByRole
Parsed = tuple[int, list[str]]  # the id of a relation, and names in the order of its roles
OPEN = "?"  # stands for what a question asks for
MAX_LISTED = 5  # relations that a message lists
MAX_ROLES = 150  # characters of a list of roles
T = TypeVar("T")


def parse_names(kb: KnowledgeBase, relation: str, entities: Names) -> Parsed:
    """Find the relation's id and put the names in the order of its roles; entities may be new."""
    relation = to_name(relation)
    if relation == OPEN:
        raise FactError("expected the name of a relation, found '?'")
    if isinstance(entities, Mapping):
        return _parse_roles(kb, relation, entities)

    names = to_names(entities)
    return _relation_of_arity(kb, relation, len(names)), names


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


def with_known_relation(kb: KnowledgeBase, named: NamedFacts) -> NamedFacts:
    """Give a table without relations the only one of the knowledge base that it can have.

    That is the only relation with its roles, or the only one at all; a relation that is known by
    the name that the table has, or has got from its file, stays.
    """
    if named.has_relations or not len(named) or named.first()[1] in kb.relations_named:
        return named

    roles = sorted(named.signatures[0])
    numbers = range(kb.n_relations)
    fitting = [number for number in numbers if sorted(kb.signatures[number].roles) == roles]
    candidates = fitting or list(numbers)
    if len(candidates) > 1:
        return named
    label = pl.Series(kb.relations.decode(candidates), dtype=pl.String)
    return replace(named, relations=label.new_from_index(0, len(named.relations)))


def find_relation(kb: KnowledgeBase, name: str) -> int:
    """Find the relation with this label, or with this name if only one relation has it."""
    name = to_name(name)
    if name in kb.relations:
        return kb.relations.id(name)

    candidates = kb.relations_named.get(name, [])
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        labels = ", ".join(kb.relations.decode(candidates))
        raise FactError(f"relation {name!r} is one of {labels} here; name one of these")
    raise _unknown_relation(name, list(kb.relations))


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
    expected = " or ".join(map(str, arities)) + " entities"
    signature = kb.signatures[groups[0][0]]
    if len(groups[0]) == 1 and signature.has_named_roles:
        expected += f" ({shorten(', '.join(signature.roles), MAX_ROLES)})"
    raise FactError(f"relation {name!r} has {expected}, found {arity}")


def _parse_roles(kb: KnowledgeBase, relation: str, entities: ByRole) -> Parsed:
    """Find the relation with this label or name, and with exactly these roles."""
    candidates = _relations_called(kb, relation)[0]
    counts = {}
    names_left = {}
    for key, given in entities.items():
        role = to_name(key)
        is_list = isinstance(given, Iterable) and not isinstance(given, str)
        names = to_names(given if is_list else [given])
        if not names:
            raise FactError(f"expected a name for the role {role!r}, found an empty list")
        counts[role] = len(names)
        names_left[role] = iter(names)
    for relation_id in candidates:
        roles = kb.signatures[relation_id].roles
        if Counter(roles) == counts:
            return relation_id, [next(names_left[role]) for role in roles]

    roles = kb.signatures[candidates[0]].roles
    unknown = next((role for role in counts if role not in roles), None)
    hint = nearest(unknown, roles) if unknown else ""
    listed = ", ".join(Counter(counts).elements()) or "none"
    raise FactError(f"relation {relation!r} has the roles {', '.join(roles)}, found {listed}{hint}")


def _relations_called(kb: KnowledgeBase, name: str) -> list[list[int]]:
    """The relation with this label, and those with this name; either may be missing."""
    labelled = [kb.relations.id(name)] if name in kb.relations else []
    groups = [labelled, kb.relations_named.get(name, [])]
    if not any(groups):
        raise _unknown_relation(name, sorted(kb.relations_named))
    return [group for group in groups if group]


def _unknown_relation(name: str, known: Sequence[str]) -> UnknownName:
    def hint() -> str:
        near = nearest(name, known)
        if near or len(known) > MAX_LISTED:
            return near
        return f"; known: {', '.join(map(repr, known))}"

    return UnknownName(f"unknown relation {name!r}", hint)


def to_name(value: object) -> str:
    """Return a name as text; only text and finite numbers are names."""
    if not is_name(value):
        raise FactError(f"expected a name, found {value!r}")
    return str(value)


def to_names(values: object) -> list[str]:
    """Return a list of names as text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise FactError(f"expected a list of names, found {values!r}")
    return [to_name(value) for value in values]

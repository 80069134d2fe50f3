"""Questions as people write them: one, or many from a file, a data frame or tuples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from getd.arrays import Ids
from getd.choices import ReadFormat
from getd.errors import FactError, nearest
from getd.facts.facts import Facts, join
from getd.facts.frames import frame_to_named, is_frame
from getd.facts.knowledge_base import KnowledgeBase, tuples_to_named
from getd.facts.named import NamedFacts
from getd.facts.parse import (
    OPEN,
    Names,
    Parsed,
    encode_fact,
    parse_each,
    parse_fact,
    parse_names,
    parse_new_fact,
    to_name,
    to_names,
    with_known_relation,
)
from getd.facts.role_order import RoleOrder
from getd.formats.registry import read_named

MAX_OPEN = 3  # positions of one question
Slot = int | None  # a position; None: the relation
Labels = tuple[str, ...]  # of entities or relations

# A file, a data frame, or facts as tuples (relation, entity, …)
FactSource = Path | str | Iterable[Sequence[Any]] | Any
Form = ReadFormat | None  # of a file; None: recognised from its content


@dataclass(frozen=True)
class Question:
    """One fact with open slots: some positions, or the relation alone."""

    fact: Facts  # one row; the ids of open slots are never read
    open: tuple[int, ...]  # the open positions, ascending; none: the relation is open
    text: Labels  # as a person wrote it: the relation, then the entities in order

    @property
    def position(self) -> Slot:
        """The open slot of a question with one."""
        return self.open[0] if self.open else None


def parse_question(kb: KnowledgeBase, relation: str, entities: Names) -> Question:
    """Parse a question: ``?`` marks what to predict; entities are in order, or by role."""
    relation_id = 0
    relation = to_name(relation)
    if relation == OPEN and not isinstance(entities, Mapping):
        names = to_names(entities)
        if len(names) not in kb.arities:
            expected = " or ".join(map(str, kb.arities))
            raise FactError(
                f"expected {expected} entities, as relations have here, found {len(names)}"
            )
    else:
        relation_id, names = parse_names(kb, relation, entities)

    words = (relation, *names)
    text = " ".join(words)
    positions = tuple(position for position, name in enumerate(names) if name == OPEN)
    if OPEN not in words:
        raise FactError(f"expected a '?' in a question, found none in {text}")
    if relation == OPEN and positions:
        raise FactError(f"expected '?' for the relation or for entities, found both in {text}")
    if len(positions) > MAX_OPEN:
        raise FactError(
            f"expected {MAX_OPEN} '?' at most in a question, found {len(positions)} in {text}"
        )
    return Question(encode_fact(kb, relation_id, names), positions, words)


def fill_question(kb: KnowledgeBase, question: Question, names: Sequence[str]) -> Facts:
    """Fill a question with an entity for each open position, or with a relation's label."""
    n_open = max(len(question.open), 1)
    if len(names) != n_open:
        raise FactError(f"expected {n_open} names for what is open, found {len(names)}")
    if not question.open:
        return Facts(kb.relations.ids(names), question.fact.entities)
    return fill_positions(question.fact, question.open, kb.entities.ids(names)[None])


def fill_positions(facts: Facts, positions: int | Sequence[int], values: Ids | int) -> Facts:
    """Replace the entities at a position by ``values (n,)``, or at several ``(n, positions)``."""
    entities = facts.entities.copy()
    entities[:, positions] = values
    return Facts(facts.relation, entities)


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
                raise FactError(
                    f"expected one of the roles {', '.join(roles)}, "
                    f"found {position!r}{nearest(position, roles)}"
                )
            columns += [column for column, role in enumerate(roles) if role == position]
        elif 0 <= position < fact.arity:
            columns.append(position)
        else:
            raise FactError(f"expected a position below {fact.arity}, found {position}")
    return columns


def names_without_facts(kb: KnowledgeBase, questions: Iterable[Question]) -> list[str]:
    """The names in questions that no training fact has, each once."""
    has_fact = np.zeros(kb.n_entities, dtype=bool)
    relations: set[int] = set()
    for facts in kb.splits.get("train", {}).values():
        has_fact[facts.entities.ravel()] = True
        relations.update(np.unique(facts.relation).tolist())

    names = []
    for question in questions:
        relation, *entities = question.text
        if question.open and int(question.fact.relation[0]) not in relations:
            names.append(relation)
        given = has_fact[question.fact.entities[0]]
        for position, name in enumerate(entities):
            if position not in question.open and not given[position]:
                names.append(name)
    return list(dict.fromkeys(names))


def read_questions(source: FactSource, kb: KnowledgeBase, form: Form = None) -> list[Question]:
    """Read questions; ``"?"`` marks what to predict."""
    return parse_each(*_read_named(source, kb, form), partial(parse_question, kb))


def read_facts(
    source: FactSource, kb: KnowledgeBase, form: Form = None
) -> tuple[list[int], dict[int, Facts]]:
    """Read facts of known names: the index of each row among all blocks, and blocks by arity."""
    facts = parse_each(*_read_named(source, kb, form), partial(parse_fact, kb))
    by_arity = np.argsort([fact.arity for fact in facts], kind="stable")
    return by_arity.argsort().tolist(), join(*({fact.arity: fact} for fact in facts))


def read_new_facts(source: FactSource, kb: KnowledgeBase, form: Form = None) -> list[Parsed]:
    """Read facts of known relations: the relation ids, and names, which may be new."""
    return parse_each(*_read_named(source, kb, form), partial(parse_new_fact, kb))


def _read_named(source: FactSource, kb: KnowledgeBase, form: Form) -> tuple[Path, NamedFacts]:
    """Read the names of a source; errors call it by the path that is returned."""
    path = Path("facts")
    if isinstance(source, str | Path):
        path = Path(source)
        named = read_named(path, form)
    elif is_frame(source):
        named = frame_to_named(source, "facts", "facts", RoleOrder())
    else:
        named = tuples_to_named(source)
    return path, with_known_relation(kb, named)

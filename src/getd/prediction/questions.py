"""Many questions, or facts, from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from getd.choices import ReadFormat
from getd.errors import FactError
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import default_roles
from getd.formats.detect import read_named
from getd.io.lines import Problems
from getd.prediction.question import OPEN, Names, Question, parse_fact, parse_names, parse_question

T = TypeVar("T")


def read_questions(path: Path, kb: KnowledgeBase, form: ReadFormat | None = None) -> list[Question]:
    """Questions from any form that facts are read from; ``?`` is what is asked for."""
    return [
        question
        for _, question in _read(
            path, form, lambda relation, names: parse_question(kb, relation, names)
        )
    ]


def read_facts(
    path: Path, kb: KnowledgeBase, form: ReadFormat | None = None
) -> tuple[list[int], dict[int, Facts]]:
    """Facts whose names a knowledge base has: where each line of the file is among all blocks, and blocks by arity."""
    found = [
        fact
        for _, fact in _read(path, form, lambda relation, names: parse_fact(kb, relation, names))
    ]
    arities = np.array([fact.arity for fact in found])
    order = np.empty(len(found), dtype=np.int64)
    order[np.argsort(arities, kind="stable")] = np.arange(len(found))
    return order.tolist(), join(*({fact.arity: fact} for fact in found))


def read_named_facts(
    path: Path, kb: KnowledgeBase, form: ReadFormat | None = None
) -> list[tuple[int, list[str]]]:
    """Facts of relations that a knowledge base has, as the relation's number and names, which may be new."""

    def parse(relation: str, names: Names) -> tuple[int, list[str]]:
        number, found = parse_names(kb, relation, names)
        if OPEN in found and OPEN not in kb.entities:
            raise FactError("expected names, found '?'")
        return number, found

    return [fact for _, fact in _read(path, form, parse)]


def _read(
    path: Path, form: ReadFormat | None, parse: Callable[[str, Names], T]
) -> list[tuple[int, T]]:
    problems, found = Problems(path), []
    for row, roles, (relation, *names) in read_named(path, form).facts():
        unnamed = roles == default_roles(len(roles))
        try:
            found.append((row, parse(relation, names if unnamed else _by_role(roles, names))))
        except FactError as error:
            problems.add(row, error)
    problems.check()
    return sorted(found, key=lambda item: item[0])


def _by_role(roles: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role, name in zip(roles, names, strict=True):
        found.setdefault(role, []).append(name)
    return found

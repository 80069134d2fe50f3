"""Many questions, or facts, from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from getd.choices import ReadFormat
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.parse import parse_each, parse_fact
from getd.formats.detect import read_named
from getd.prediction.question import Question, parse_question


def read_questions(path: Path, kb: KnowledgeBase, form: ReadFormat | None = None) -> list[Question]:
    """Questions from any form that facts are read from; ``?`` is what is asked for."""
    named = read_named(path, form)
    return parse_each(path, named, lambda relation, names: parse_question(kb, relation, names))


def read_facts(
    path: Path, kb: KnowledgeBase, form: ReadFormat | None = None
) -> tuple[list[int], dict[int, Facts]]:
    """Facts whose names a knowledge base has: where each line of the file is among all blocks, and blocks by arity."""
    named = read_named(path, form)
    facts = parse_each(path, named, lambda relation, names: parse_fact(kb, relation, names))
    arities = np.array([fact.arity for fact in facts])
    order = np.empty(len(facts), dtype=np.int64)
    order[np.argsort(arities, kind="stable")] = np.arange(len(facts))
    return order.tolist(), join(*({fact.arity: fact} for fact in facts))

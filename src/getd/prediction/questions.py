"""Many questions or facts at once: from a file, a data frame or tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from getd.choices import ReadFormat
from getd.facts.facts import Facts, join
from getd.facts.frames import frame_to_named
from getd.facts.knowledge_base import KnowledgeBase, tuples_to_named
from getd.facts.named import NamedFacts
from getd.facts.parse import parse_each, parse_fact, parse_new_facts
from getd.facts.role_order import RoleOrder
from getd.formats.registry import read_named
from getd.prediction.question import Question, parse_question

# A file, a data frame, or facts as tuples (relation, entity, …)
FactSource = Path | str | Iterable[Sequence[Any]] | Any


def read_questions(
    source: FactSource, kb: KnowledgeBase, form: ReadFormat | None = None
) -> list[Question]:
    """Read questions; ``"?"`` marks what to predict."""
    label, named = _named(source, form)
    return parse_each(label, named, lambda relation, names: parse_question(kb, relation, names))


def read_facts(
    source: FactSource, kb: KnowledgeBase, form: ReadFormat | None = None
) -> tuple[list[int], dict[int, Facts]]:
    """Read facts of known names: the index of each row among all blocks, and blocks by arity."""
    label, named = _named(source, form)
    facts = parse_each(label, named, lambda relation, names: parse_fact(kb, relation, names))

    arities = np.array([fact.arity for fact in facts])
    order = np.empty(len(facts), dtype=np.int64)
    order[np.argsort(arities, kind="stable")] = np.arange(len(facts))
    return order.tolist(), join(*({fact.arity: fact} for fact in facts))


def read_new_facts(
    source: FactSource, kb: KnowledgeBase, form: ReadFormat | None = None
) -> list[tuple[int, list[str]]]:
    """Read facts of known relations: the relation ids, and names, which may be new."""
    label, named = _named(source, form)
    return parse_new_facts(label, named, kb)


def _named(source: FactSource, form: ReadFormat | None) -> tuple[Path, NamedFacts]:
    """Read the names of a source; errors call it by the path that is returned."""
    if isinstance(source, str | Path):
        return Path(source), read_named(Path(source), form)
    is_frame = hasattr(source, "columns") or hasattr(source, "collect_schema")
    named = (
        frame_to_named(source, "facts", "facts", RoleOrder())
        if is_frame
        else tuples_to_named(source)
    )
    return Path("facts"), named

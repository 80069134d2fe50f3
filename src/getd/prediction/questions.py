"""Many questions from a file."""

from __future__ import annotations

from pathlib import Path

from getd.errors import FactError
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.read import read_labels
from getd.facts.relation import default_roles
from getd.facts.source import Problems
from getd.prediction.question import Question, parse_question


def read_questions(path: Path, kb: KnowledgeBase) -> list[Question]:
    """Questions from any form that facts are read from; ``?`` is what is asked for."""
    problems, found = Problems(path), []
    for roles, block in read_labels(path).blocks.items():
        for row, relation, *names in block.drop("arrangement", strict=False).iter_rows():
            entities = names if roles == default_roles(len(roles)) else dict(zip(roles, names, strict=True))
            try:
                found.append((row, parse_question(kb, relation, entities)))
            except FactError as error:
                problems.add(row, str(error))
    problems.check()
    return [question for _, question in sorted(found, key=lambda item: item[0])]

"""Facts by name, for tests."""

from __future__ import annotations

import numpy as np

from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.rate import Rating
from getd.run import Run


def every_fact(kb: KnowledgeBase) -> list[tuple[str, ...]]:
    facts = []
    for blocks in kb.splits.values():
        for block in blocks.values():
            facts += kb.decode(block)
    return facts


def rate(run: Run, relation: str, facts: list[list[str]]) -> list[Rating]:
    ids = np.array([run.kb.entities.ids(fact) for fact in facts])
    return run.predictor.rate(Facts(np.full(len(facts), run.kb.relations.id(relation)), ids))

"""A world to calibrate on."""

from __future__ import annotations

import numpy as np

from getd.facts.knowledge_base import KnowledgeBase

NAMES = [f"e{i}" for i in range(9)]


def random_kb(test: list[tuple[str, ...]] | None = None) -> KnowledgeBase:
    """A relation ``r`` that is validated, and ``s``, which is not."""
    rng = np.random.default_rng(0)
    facts = [("r", *rng.permutation(NAMES[:7])[:3]) for _ in range(160)]
    other = [("s", NAMES[i % 9], NAMES[(i * i) % 9], NAMES[(3 * i) % 9]) for i in range(9)]
    return KnowledgeBase.from_facts(
        {"train": facts[:60] + other, "valid": facts[60:], "test": test or other[:1]}
    )

"""A small combined run for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import getd
from getd.facts.knowledge_base import KnowledgeBase
from getd.run import Run
from tests.tiny import tiny_knowledge_base

MEMBERS: dict[str, dict[str, Any]] = {
    "getd": {"entity_dim": 4, "ring_ranks": 2},
    "n-cp": {"entity_dim": 4},
}
TRAINING = {"epochs": 2, "batch_size": 32, "learning_rate": 0.02, "threads": 1}


def train_member(name: str, out: Path, kb: KnowledgeBase | None = None, **training: Any) -> Run:
    model = {"name": name, **MEMBERS.get(name, {})}
    config = {"preset": "paper", "model": model, "training": TRAINING | training}
    return getd.train(kb or tiny_knowledge_base(), out=out, config=config)


def combined_run(out: Path, kb: KnowledgeBase | None = None, **options: Any) -> Run:
    """Train two small runs next to a folder, and combine them in it."""
    runs = [train_member(name, out.with_name(f"{out.name}-{name}"), kb) for name in MEMBERS]
    return getd.combine(runs, out, **options)

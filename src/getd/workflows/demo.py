"""Training on the built-in demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from getd.datasets.load import load
from getd.errors import RunError
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.question import Question, parse_question
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training.callbacks import Callbacks
from getd.training.start import train

DEMO_CONFIG: dict[str, Any] = {
    "data": "demo",
    "model": {
        "name": "getd",
        "entity_dim": 32,
        "ring_ranks": 12,
        "entity_dropout": 0.2,
        "query_dropout": 0.2,
    },
    "training": {"epochs": 40, "learning_rate": 0.01, "patience": 10},
}
_SHOWN = (
    ("plays for", 1),
    ("transfer", 2),
    ("award", 0),
    ("fixture", 2),
    ("born in", 1),
)  # relation, hidden position


def train_demo(out: Path, callbacks: Callbacks | None = None) -> OpenedRun:
    """Train a small GETD on the demo; a run of the demo that is there is replaced, any other refused."""
    folder = RunFolder(out)
    if folder.exists() and (data := folder.read_roles().data) != "demo":
        raise RunError(f"{out} holds a run on {data}; choose another place for the demo")
    config = Config.parse(DEMO_CONFIG)
    return train(load("demo"), config, out, overwrite=True, callbacks=callbacks)


def sample_questions(kb: KnowledgeBase) -> list[tuple[Question, str]]:
    """A test fact of each kind with one entity hidden, and that entity."""
    found = []
    for name, position in _SHOWN:
        number = kb.relations.id(name)
        facts: Facts = kb.split("test")[kb.signatures[number].arity]
        row = facts.take(np.flatnonzero(facts.relation == number)[:1])
        _, *entities = kb.decode(row)[0]
        right, entities[position] = entities[position], "?"
        found.append((parse_question(kb, name, entities), right))
    return found

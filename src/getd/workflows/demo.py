"""Train on the built-in demo, and answer questions about facts that were held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from getd.config import read_toml
from getd.datasets.load import load
from getd.errors import RunError
from getd.prediction.answer import Answer
from getd.prediction.predictor import Predictor
from getd.prediction.question import Question, parse_question
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training.callbacks import Callbacks
from getd.training.start import train

DEMO_CONFIG = read_toml(Path(__file__).with_name("demo.toml"))
# The position that is hidden in one test fact of each relation.
HIDDEN_POSITIONS = {"plays for": 1, "transfer": 2, "award": 0, "fixture": 2, "born in": 1}
TOP = 3  # answers of each question


@dataclass(frozen=True)
class Example:
    """A question about a held-out fact of the demo."""

    question: Question
    right: str  # the name that was hidden
    answers: Sequence[Answer]


def train_demo(out: Path, callbacks: Callbacks | None = None) -> OpenedRun:
    """Train a small GETD on the demo; replaces a run of the demo, and refuses any other run."""
    folder = RunFolder(out)
    if folder.exists() and (data := folder.read_roles().data) != "demo":
        raise RunError(f"{out} holds a run on {data}; choose another place for the demo")
    config = Config.parse(DEMO_CONFIG)
    return train(load("demo"), config, out, overwrite=True, callbacks=callbacks)


def answer_held_out(predictor: Predictor) -> list[Example]:
    """Hide one entity in a test fact of each relation, and predict it."""
    kb = predictor.kb
    questions = []
    hidden_names = []
    for name, position in HIDDEN_POSITIONS.items():
        relation = kb.relations.id(name)
        facts = kb.split("test")[kb.signatures[relation].arity]
        first = np.flatnonzero(facts.relation == relation)[:1]
        _, *entities = kb.decode(facts.take(first))[0]

        hidden_names.append(entities[position])
        entities[position] = "?"
        questions.append(parse_question(kb, name, entities))

    # Answers known from train and valid are left out; those of test are what is looked for.
    answerer = replace(predictor.answerer, known=kb.known("train", "valid"))
    answered = answerer.answer(questions, TOP)
    return list(map(Example, questions, hidden_names, answered))

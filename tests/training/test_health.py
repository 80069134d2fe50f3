"""A training that went wrong says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import getd
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import make_model, model_settings
from getd.runs.records import HistoryLine
from getd.runs.sizes import model_sizes
from getd.training.callbacks import Callbacks
from getd.training.health import largest_fall, training_notices
from tests.evaluation.reference_evaluation import Table


def lines(*mrrs: float) -> list[HistoryLine]:
    return [
        HistoryLine(epoch=number, loss=1.0, seconds=1.0, valid_mrr=mrr)
        for number, mrr in enumerate(mrrs, start=1)
    ]


@pytest.mark.parametrize(
    ("mrrs", "epochs"),
    [
        ((0.1, 0.4, 0.3, 0.5), None),
        ((0.4, 0.2), None),  # half is not less than half
        ((0.4, 0.19, 0.5), (1, 2)),
        ((0.4, 0.19, 0.5, 0.1, 0.6), (3, 4)),
        ((0.4, 0.01, 0.5, 0.1), (1, 2)),
        ((0.019, 0.0001), None),  # there was nothing to lose
        ((), None),
    ],
)
def test_a_fall_is_a_loss_of_more_than_half_of_the_best_so_far(
    mrrs: tuple[float, ...], epochs: tuple[int, int] | None
) -> None:
    assert largest_fall(dict(enumerate(mrrs, start=1))) == epochs


@pytest.fixture(scope="module")
def counted() -> KnowledgeBase:
    """Facts that counting knows: each of the first entities stands with one other alone."""
    facts = [("of", f"a{a}", f"b{a % 5}", f"c{c}") for a in range(10) for c in range(6)]
    return KnowledgeBase.from_facts(facts)


def test_a_model_below_the_better_baseline_is_named_with_what_to_try(
    counted: KnowledgeBase,
) -> None:
    (notice,) = training_notices(
        Table(1, counted.n_entities), counted, [HistoryLine(epoch=1, loss=2.0, seconds=1.0)]
    )
    assert notice.startswith("validation MRR 0.")
    assert "is below that of counting (lookup: 1.000)" in notice
    assert notice.endswith("; try getd remember, more training.epochs or getd tune")


def test_a_run_carries_the_notices_of_its_training(counted: KnowledgeBase, tmp_path: Path) -> None:
    run = getd.train(counted, "n-cp", tmp_path / "run", epochs=1, learning_rate=1e-6)
    assert len(run.notices) == 1
    assert "is below that of counting" in run.notices[0]


def test_a_fall_is_told_with_its_epochs(counted: KnowledgeBase) -> None:
    train_alone = counted.with_splits(train=counted.split("train"))
    notices = training_notices(Table(1, counted.n_entities), train_alone, lines(0.2, 0.7, 0.3, 0.5))
    assert list(notices) == [
        "validation MRR fell from 0.700 (epoch 2) to 0.300 (epoch 3); the best weights were kept; "
        'try a smaller training.learning_rate, training.clip=1 or model.norm="rms"'
    ]


def remembered(kb: KnowledgeBase, model: ScoringModel) -> WithMemory:
    return WithMemory(model, Memory.from_facts(kb.split("train"), kb.n_entities), {})


def test_a_run_with_a_memory_is_not_told_to_remember(counted: KnowledgeBase) -> None:
    model = remembered(counted, Table(1, counted.n_entities))
    (notice,) = training_notices(model, counted, lines(0.6))
    assert notice.endswith("; try more training.epochs or getd tune")


@pytest.mark.parametrize(
    ("name", "settings", "advice"),
    [
        ("encoder", {}, "--set model.kind=attention or a smaller training.learning_rate"),
        ("encoder", {"kind": "attention"}, "a smaller training.learning_rate"),
        ("n-cp", {}, "a smaller training.learning_rate"),
    ],
)
def test_a_memory_does_not_hide_that_its_model_learnt_little(
    counted: KnowledgeBase, name: str, settings: dict[str, Any], advice: str
) -> None:
    bare = make_model(name, model_settings(name, settings), model_sizes(counted))
    (notice,) = training_notices(remembered(counted, bare.eval()), counted, lines(0.2, 0.45))
    assert notice.startswith("validation MRR 0.450 of the model alone is below half of that of ")
    assert "counting (lookup: 1.000), and 0." in notice
    assert notice.endswith(f" with its memory; try {advice}")


def test_a_training_without_validation_says_what_it_goes_without(
    counted: KnowledgeBase, tmp_path: Path
) -> None:
    choices: list[str] = []
    callbacks = Callbacks(on_choice=choices.append)
    alone = counted.with_splits(train=counted.split("train"))
    getd.train(alone, "n-cp", tmp_path / "run", epochs=1, callbacks=callbacks)
    expected = "no validation facts: no early stopping, no memory and no confidence of answers"
    assert choices == [expected]
    getd.train(counted, "n-cp", tmp_path / "other", epochs=1, callbacks=callbacks)
    assert choices == [expected]

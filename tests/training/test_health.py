"""A training that went wrong says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import getd
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.records import HistoryLine
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

"""Metrics equal what one computes by hand."""

from __future__ import annotations

import numpy as np
import pytest

from getd.evaluation import metrics as metrics_module
from getd.evaluation.metrics import (
    adjusted_mean_rank_index,
    mean_reciprocal_rank,
    measure,
    mrr_interval,
)
from tests.evaluation import reference_evaluation as reference


def test_metrics_equal_those_computed_by_hand() -> None:
    metrics = measure(
        np.array([1.0, 2.0, 3.5, 10.0, 20.0]),
        np.array([11, 11, 21, 21, 41]),
        np.array([0, 0, 1, 1, 2]),
    )
    assert metrics.mrr == pytest.approx((1 + 1 / 2 + 2 / 7 + 1 / 10 + 1 / 20) / 5)
    assert (metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10) == (0.2, 0.4, 0.8)
    assert metrics.mean_rank == pytest.approx(7.3)
    assert metrics.amri == pytest.approx(1 - 6.3 / 10)  # expected ranks 6, 6, 11, 11, 21
    assert metrics.questions == 5


@pytest.mark.parametrize("candidates", [np.array([2, 5, 9]), np.array([4, 4, 4])])
def test_the_adjusted_index_is_1_for_the_best_0_for_chance_and_minus_1_for_the_worst(
    candidates: np.ndarray,
) -> None:
    assert adjusted_mean_rank_index(np.ones(3), candidates) == 1
    assert adjusted_mean_rank_index((candidates + 1) / 2, candidates) == 0
    assert adjusted_mean_rank_index(candidates.astype(float), candidates) == pytest.approx(-1)


def test_without_rivals_the_adjusted_index_is_0() -> None:
    assert adjusted_mean_rank_index(np.ones(2), np.ones(2, dtype=np.int64)) == 0


def test_the_mrr_over_all_ranks_of_a_random_scorer_is_the_harmonic_number_over_n() -> None:
    assert mean_reciprocal_rank(np.arange(1.0, 8.0)) == pytest.approx(
        (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5 + 1 / 6 + 1 / 7) / 7
    )


@pytest.mark.parametrize("held", [1, 20, 2**20])
def test_the_interval_equals_a_nested_loop_however_many_draws_are_held(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "MAX_DRAWS", held)
    monkeypatch.setattr(metrics_module, "RESAMPLES", 50)
    reciprocals = [[1.0, 0.5, 0.25], [0.1, 0.2], [1.0], [0.125, 0.5], [0.05, 0.04, 0.03]]
    rank = 1 / np.array([value for fact in reciprocals for value in fact])
    fact = np.array([number for number, values in enumerate(reciprocals) for _ in values]) * 7
    expected = reference.interval(reciprocals, seed=3, resamples=50)
    assert mrr_interval(rank, fact, seed=3) == pytest.approx(expected)


def test_the_interval_holds_the_mrr_and_narrows_with_the_number_of_facts() -> None:
    rank = np.random.default_rng(0).integers(1, 20, 4000).astype(float)
    few, many = (mrr_interval(rank[:n], np.arange(n)) for n in (40, 4000))
    assert many[0] < mean_reciprocal_rank(rank) < many[1]
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(10, rel=0.4)


def test_asking_each_question_twice_makes_nothing_surer() -> None:
    rank, fact = np.array([1.0, 2.0, 8.0, 3.0]), np.array([0, 0, 1, 2])
    assert mrr_interval(rank.repeat(2), fact.repeat(2)) == pytest.approx(mrr_interval(rank, fact))

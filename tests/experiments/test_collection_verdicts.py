"""The collection's verdicts: a paired bootstrap, and what a training should hold to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.collection.results import Measurement, Result
from experiments.collection.verdicts import Comparison, compare, largest_fall, mean_interval

FACT = np.repeat(np.arange(200), 3)
RANK = np.random.default_rng(0).integers(1, 40, len(FACT)).astype(float)


def comparison(**changes: Any) -> Comparison:
    values = {"questions": 100, "mrr": 0.6, "baselines": {"frequency": 0.5}}
    return Comparison(**values | {"better": "frequency", "interval": (0.05, 0.15)} | changes)


def result(data: str = "recipes", **changes: Any) -> Result:
    values = {
        "facts": {"train": 8, "valid": 1, "test": 1},
        "entities": 5,
        "relations": 1,
        "total": comparison(),
        "arities": {"2": comparison()},
        "best_valid_mrr": 0.6,
        "epochs": 20,
        "fall": 0.01,
        "seconds": 60.0,
        "cpu_seconds": 100.0,
        "settings": {},
    }
    measured = Measurement(**values | changes)
    about = {"label": "default", "split": "test", "data": data, "seed": 5, "commit": None}
    return Result(**about, machine={}, measured=measured)


def test_a_model_that_equals_the_baseline_is_neither_below_nor_above() -> None:
    equal = compare(RANK, {"lookup": RANK.copy()}, FACT)
    assert equal.interval == (0.0, 0.0)
    assert not equal.is_below
    assert not equal.is_above


def test_a_model_that_is_clearly_better_is_above() -> None:
    better = compare(np.maximum(RANK - 5, 1), {"lookup": RANK}, FACT)
    assert better.is_above
    assert not better.is_below
    assert better.difference > 0


def test_a_model_that_is_clearly_worse_is_below() -> None:
    worse = compare(RANK + 5, {"lookup": RANK}, FACT)
    assert worse.is_below
    assert not worse.is_above
    assert worse.difference < 0


def test_a_model_that_gains_and_loses_by_chance_is_neither() -> None:
    shuffled = np.random.default_rng(1).permutation(RANK)
    even = compare(shuffled, {"lookup": RANK}, FACT)
    assert even.interval[0] < 0 < even.interval[1]


def test_the_better_baseline_is_the_one_with_the_higher_mrr() -> None:
    compared = compare(RANK, {"frequency": RANK + 5, "lookup": RANK + 1}, FACT)
    assert compared.better == "lookup"
    assert compared.baseline_mrr == compared.baselines["lookup"] > compared.baselines["frequency"]


def test_the_interval_holds_the_mean_and_depends_on_nothing_but_the_seed() -> None:
    gain = np.random.default_rng(2).normal(0.1, 1, len(FACT))
    low, high = mean_interval(gain, FACT)
    assert low < gain.mean() < high
    assert mean_interval(gain, FACT) == (low, high)
    assert mean_interval(gain, FACT, seed=1) != (low, high)


def test_more_questions_of_the_same_facts_do_not_narrow_the_interval() -> None:
    gain = np.random.default_rng(3).normal(size=50)
    fact = np.arange(50)
    once = mean_interval(gain, fact)
    assert mean_interval(np.repeat(gain, 4), np.repeat(fact, 4)) == pytest.approx(once)


def test_a_fall_is_counted_after_epoch_5_and_from_the_best_so_far() -> None:
    assert largest_fall([(1, 0.5), (5, 0.1)]) == 0
    assert largest_fall([(4, 0.5), (5, 0.1), (6, 0.3), (7, 0.45)]) == pytest.approx(0.2)
    assert largest_fall([(6, 0.2), (7, 0.3), (8, 0.4)]) == 0


def test_a_training_holds_if_it_is_above_and_steady_and_fast() -> None:
    assert result().failures() == []


@pytest.mark.parametrize(
    ("changes", "failures"),
    [
        ({"total": comparison(interval=(-0.2, -0.1))}, ["below"]),
        ({"total": comparison(interval=(-0.1, 0.1))}, ["not above"]),
        ({"arities": {"2": comparison(interval=(-0.2, -0.1))}}, ["arity below"]),
        ({"fall": 0.11}, ["fall"]),
        ({"seconds": 2401.0}, ["slow"]),
    ],
)
def test_every_condition_can_fail(changes: dict[str, Any], failures: list[str]) -> None:
    assert result(**changes).failures() == failures


def test_arities_with_few_questions_are_not_judged() -> None:
    below = {"questions": 49, "interval": (-0.2, -0.1)}
    assert result(arities={"2": comparison(**below)}).failures() == []
    assert result(arities={"2": comparison(**below | {"questions": 50})}).failures() != []


def test_a_baseline_of_95_percent_need_not_be_surpassed() -> None:
    even = {"interval": (-0.01, 0.01)}
    assert result(total=comparison(baselines={"frequency": 0.95}, **even)).failures() == []
    assert result(total=comparison(baselines={"frequency": 0.94}, **even)).failures() != []


def test_where_there_is_nothing_but_counts_a_model_need_not_be_above() -> None:
    even = comparison(interval=(-0.01, 0.01))
    assert result("noise", total=even).failures() == []
    assert result("noise", total=comparison(interval=(-0.2, -0.1))).failures() == ["below"]

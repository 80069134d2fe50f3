"""Confidence rises with the evidence, and false facts are false."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.using import area_under_curve
from getd.calibration.confidence import (
    Confidence,
    Evidence,
    corrupt,
    fit_confidence,
    fit_rising_curve,
)
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.getd import GETD


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_the_area_is_a_share_of_pairs(true: list[int], false: list[int]) -> None:
    expected = sum((t > f) + 0.5 * (t == f) for t in true for f in false) / (len(true) * len(false))
    assert area_under_curve(
        np.array(true, dtype=float), np.array(false, dtype=float)
    ) == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_a_corrupted_fact_differs_in_one_place_and_is_not_known(
    kb: KnowledgeBase, model: GETD, temperature: float | None
) -> None:
    facts, known = kb.split("valid")[4], kb.known()
    with torch.no_grad():
        corrupted = corrupt(model, facts, known, torch.Generator().manual_seed(0), temperature)
    assert len(corrupted) == len(facts)
    assert not known.contains(corrupted).any()
    before = {tuple(row) for row in facts.rows().tolist()}
    for row in corrupted.rows().tolist():
        assert any(sum(a != b for a, b in zip(row, other, strict=True)) == 1 for other in before)


def test_where_nothing_tells_true_from_false_confidence_is_one_half() -> None:
    features = np.column_stack([np.tile([-1.0, -2.0], 50), np.full(100, -3.0)])
    evidence = Evidence(features, np.repeat([1.0, 0.0], 50), np.ones(100))
    confidence = fit_confidence(evidence).of(np.array([-1.0, -9.0]), np.array([0.0, 1.0]))
    assert confidence.tolist() == pytest.approx([0.5, 0.5], abs=0.01)


def test_confidence_is_finite_where_true_and_false_are_apart() -> None:
    confidence = Confidence(slope=1e6, intercept=0.0).of(np.array([-1e6, 1e6]), np.ones(2))
    assert confidence.tolist() == pytest.approx([0.0, 1.0])


def test_confidence_is_one_half_halfway_between_what_is_true_and_what_is_false() -> None:
    plausibility = np.concatenate([np.linspace(-3, -1, 50), np.linspace(-7, -5, 50)])
    is_true = np.repeat([1.0, 0.0], 50)
    features = np.column_stack([plausibility, np.zeros(100)])
    confidence = fit_confidence(Evidence(features, is_true, np.ones(100))).of(
        np.array([-1.0, -4.0, -7.0]), np.ones(3)
    )
    assert confidence[0] > 0.9
    assert confidence[1] == pytest.approx(0.5, abs=0.02)
    assert confidence[2] < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_a_rising_curve_is_the_nearest_one_that_never_falls(seed: int) -> None:
    """The height at a point is the largest over starts of the least mean over ends of spans."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 12, 40).astype(float)
    y = rng.random(40)
    weight = rng.random(40) + 0.1
    at, heights = fit_rising_curve(x, y, weight)
    for point in np.unique(x):
        lows = []
        for start in np.unique(x[x <= point]):
            spans = [(x >= start) & (x <= end) for end in np.unique(x[x >= point])]
            lows.append(min(np.average(y[span], weights=weight[span]) for span in spans))
        assert np.interp(point, at, heights) == pytest.approx(max(lows))


@pytest.mark.parametrize(("n_true", "shape"), [(999, "logistic"), (1000, "isotonic")])
def test_from_1000_true_facts_on_confidence_may_have_any_shape(n_true: int, shape: str) -> None:
    is_true = np.repeat([1.0, 0.0], n_true)
    features = np.column_stack([np.linspace(-1, -9, 2 * n_true), np.zeros(2 * n_true)])
    assert fit_confidence(Evidence(features, is_true, np.ones(2 * n_true))).shape == shape

"""Reliability against loops, and probabilities against slow sums."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from getd.calibration.calibrate import Calibration, reliability
from getd.calibration.reliability import reliability_of
from tests.calibration.reference_calibration import random_kb
from tests.evaluation.reference_evaluation import Table
from tests.reference import known_answers
from tests.tiny import all_facts


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(1, 6)
)
def test_reliability_is_the_mean_distance_over_bins(
    answers: list[tuple[float, bool]], bins: int
) -> None:
    probability, right = np.array([p for p, _ in answers]), np.array([r for _, r in answers])
    ordered, error = sorted(range(len(answers)), key=lambda i: probability[i]), 0.0
    sizes = [len(answers) // bins + (i < len(answers) % bins) for i in range(bins)]
    for size in sizes:
        part, ordered = ordered[:size], ordered[size:]
        if part:
            error += abs(sum(probability[i] for i in part) - sum(right[i] for i in part))
    assert reliability_of(probability, right, bins).error == pytest.approx(
        error / len(answers), abs=1e-9
    )


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_probability_of_a_first_answer_is_that_of_a_softmax_over_the_temperature(
    temperature: float,
) -> None:
    kb = random_kb()
    model = Table(kb.n_relations, kb.n_entities).eval()
    facts = kb.split("valid")[3].take(slice(0, 10))
    every = all_facts(kb)
    probability = []
    for row, position in product(range(len(facts)), range(3)):
        fact = facts.take(slice(row, row + 1))
        (names,) = kb.decode(fact)
        others = set(known_answers(every, names, position + 1)) - {names[position + 1]}
        scores = model.score_candidates(
            torch.tensor(fact.relation), torch.tensor(fact.entities), position
        )[0].tolist()
        kept = [
            math.exp(s / temperature)
            for name, s in zip(kb.entities, scores, strict=True)
            if name not in others
        ]
        probability.append(max(kept) / sum(kept))
    (measured,) = reliability(
        model, {3: facts}, kb.known(), [Calibration(temperature={"3": temperature})]
    )
    sizes = [len(part) for part in np.array_split(np.arange(30), len(measured.probability))]
    total = sum(size * mean for size, mean in zip(sizes, measured.probability, strict=True))
    assert total == pytest.approx(sum(probability), rel=1e-5)

"""Probabilities against slow sums, reliability against loops, confidence that rises with the evidence."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import getd
from experiments.using import area_under_curve
from getd.calibration.calibrate import Calibration, calibrate, calibration_facts, reliability
from getd.calibration.confidence import (
    Confidence,
    Evidence,
    corrupt,
    fit_confidence,
)
from getd.calibration.reliability import reliability_of
from getd.calibration.slot_fit import NEUTRAL, SlotFit
from getd.calibration.temperature import fit_temperature
from getd.evaluation.scoring import log_probabilities
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ModelSizes
from getd.models.getd import GETD, GETDSettings
from tests.reference import known_answers


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return getd.load("demo")


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> GETD:
    made = GETD(
        ModelSizes(kb.n_entities, kb.n_relations, kb.arities),
        GETDSettings(entity_dim=6, ring_ranks=3, initial_scale=1.0),
        torch.Generator().manual_seed(0),
    )
    return made.eval()


def test_log_probabilities_are_those_of_a_softmax_without_other_known_answers(
    kb: KnowledgeBase, model: GETD
) -> None:
    facts = kb.split("valid")[3].take(slice(0, 4))
    every = [
        fact
        for blocks in kb.splits.values()
        for block in blocks.values()
        for fact in kb.decode(block)
    ]
    found = log_probabilities(model, facts, kb.known(), temperature=0.7)
    for row, position in product(range(len(facts)), range(3)):
        fact = kb.decode(facts.take(slice(row, row + 1)))[0]
        others = set(known_answers(every, fact, position + 1)) - {fact[position + 1]}
        with torch.no_grad():
            scores = model.score_candidates(
                torch.tensor(facts.relation[row : row + 1]),
                torch.tensor(facts.entities[row : row + 1]),
                position,
            )[0].tolist()
        kept = {
            name: math.exp(score / 0.7)
            for name, score in zip(kb.entities, scores, strict=True)
            if name not in others
        }
        wanted = math.log(kept[str(fact[position + 1])] / sum(kept.values()))
        assert found[row, position] == pytest.approx(wanted, abs=1e-5)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(1, 6)
)
def test_reliability_is_the_mean_distance_over_bins(
    told: list[tuple[float, bool]], bins: int
) -> None:
    said, right = np.array([p for p, _ in told]), np.array([r for _, r in told])
    ordered, error = sorted(range(len(told)), key=lambda i: said[i]), 0.0
    sizes = [len(told) // bins + (i < len(told) % bins) for i in range(bins)]
    for size in sizes:
        part, ordered = ordered[:size], ordered[size:]
        if part:
            error += abs(sum(said[i] for i in part) - sum(right[i] for i in part))
    assert reliability_of(said, right, bins).error == pytest.approx(error / len(told), abs=1e-9)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_the_area_is_a_share_of_pairs(true: list[int], false: list[int]) -> None:
    wanted = sum((t > f) + 0.5 * (t == f) for t in true for f in false) / (len(true) * len(false))
    assert area_under_curve(
        np.array(true, dtype=float), np.array(false, dtype=float)
    ) == pytest.approx(wanted)


@pytest.mark.parametrize("temperature", [None, 0.5])
def test_a_corrupted_fact_differs_in_one_place_and_is_not_known(
    kb: KnowledgeBase, model: GETD, temperature: float | None
) -> None:
    facts, known = kb.split("valid")[4], kb.known()
    with torch.no_grad():
        made = corrupt(model, facts, known, torch.Generator().manual_seed(0), temperature)
    assert len(made) == len(facts)
    assert not known.contains(made).any()
    before = {tuple(row) for row in facts.rows().tolist()}
    for row in made.rows().tolist():
        assert any(sum(a != b for a, b in zip(row, other, strict=True)) == 1 for other in before)


def test_calibration_is_better_than_none_and_confidence_rises(
    kb: KnowledgeBase, model: GETD
) -> None:
    fitted, facts = calibrate(model, kb, sample=120), calibration_facts(model, kb, sample=120)
    known = kb.known("train", "valid")
    before, after = (
        found.error for found in reliability(model, facts, known, [Calibration(), fitted])
    )
    assert after <= before
    for arity in kb.arities:
        found = [
            fitted.confidence_of(arity, np.array([x]), np.array([f]))
            for x in (-20.0, -5.0, -0.1)
            for f in (0.0, 1.0)
        ]
        values = [float(value[0]) for value in found if value is not None]
        assert values[0::2] == sorted(values[0::2])
        assert all(
            worse <= better for worse, better in zip(values[0::2], values[1::2], strict=True)
        )
        assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize("shape", ["logistic", "isotonic"])
def test_both_shapes_are_kept_and_read_again(kb: KnowledgeBase, model: GETD, shape: str) -> None:
    pytest.importorskip("sklearn")
    fitted = calibrate(model, kb, sample=60, shape=shape)
    again = Calibration.model_validate_json(fitted.model_dump_json())
    assert again == fitted
    assert {found.shape for found in again.confidence.values()} == {shape}


def test_arities_of_few_facts_are_fitted_with_the_others(kb: KnowledgeBase, model: GETD) -> None:
    valid = kb.split("valid")
    few = kb.with_splits(
        train=kb.split("train"),
        valid={**valid, 4: valid[4].take(slice(0, 3))},
        test=kb.split("test"),
    )
    pooled = fit_temperature(model, few.split("valid"), few.known("train", "valid"))
    assert calibrate(model, few).temperature["4"] == pooled
    tiny = {arity: facts.take(slice(0, 2)) for arity, facts in valid.items()}
    assert set(
        calibrate(model, kb.with_splits(train=kb.split("train"), valid=tiny)).temperature.values()
    ) == {1.0}


def test_where_nothing_tells_true_from_false_confidence_is_one_half() -> None:
    features = np.column_stack([np.tile([-1.0, -2.0], 50), np.full(100, -3.0)])
    evidence = Evidence(features, np.repeat([1.0, 0.0], 50), np.ones(100))
    found = fit_confidence(evidence).of(np.array([-1.0, -9.0]), np.array([0.0, 1.0]))
    assert found.tolist() == pytest.approx([0.5, 0.5], abs=0.01)


def test_confidence_is_finite_where_true_and_false_are_apart() -> None:
    found = Confidence(slope=1e6, intercept=0.0).of(np.array([-1e6, 1e6]), np.ones(2))
    assert found.tolist() == pytest.approx([0.0, 1.0])


FACTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)),
    min_size=1,
    max_size=14,
    unique=True,
)


@given(FACTS, st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)))
def test_role_fit_against_loops(
    facts: list[tuple[int, int, int]], asked: tuple[int, int, int]
) -> None:
    kb = KnowledgeBase.from_facts({"train": [(f"r{r}", f"e{a}", f"e{b}") for r, a, b in facts]})
    if any(f"e{e}" not in kb.entities for e in asked[1:]) or f"r{asked[0]}" not in kb.relations:
        return
    own = asked in facts
    roles: dict[int, Counter[tuple[int, int]]] = {}
    for relation, *entities in facts:
        for position, entity in enumerate(entities):
            roles.setdefault(entity, Counter())[relation, position] += 1
    wanted = []
    for position, entity in enumerate(asked[1:]):
        role, has = (asked[0], position), Counter(roles[entity])
        if own:
            has[role] -= 1
        others = [other for other, number in has.items() if number > 0 and other != role]
        if has[role] > 0:
            wanted.append(1.0)
        elif not others:
            wanted.append(NEUTRAL)
        else:
            rest = [found for e, found in roles.items() if not (own and e == entity)]
            shares = []
            for other in others:
                holding = [found for found in rest if found[other] > 0]
                shares.append(sum(found[role] > 0 for found in holding) / max(len(holding), 1))
            wanted.append(max(shares))
    ids = np.array([[kb.entities.id(f"e{e}") for e in asked[1:]]])
    found = SlotFit(kb).of(Facts(np.array([kb.relations.id(f"r{asked[0]}")]), ids), own=own)
    assert found[0].tolist() == pytest.approx(wanted)

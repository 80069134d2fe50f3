"""Memory weights are fitted on validation alone, and chosen on facts not fitted on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import (
    BLEND_PRIOR,
    CANDIDATES,
    CERTAIN,
    PRIOR,
    Fit,
    Slot,
    choose_fits,
    facts_to_fit,
    fit_weights,
    ways_to_fit,
)
from getd.memory.memory import Memory
from getd.memory.prior import learn_prior
from getd.memory.questions import SCALES, Questions, soft_step
from getd.memory.weights import MemoryWeights
from getd.models.base import ModelSizes, ScoringModel

Fact = tuple[str, ...]


class Constant(ScoringModel):
    """A model that knows nothing."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(ModelSizes(kb.n_entities, kb.n_relations, kb.arities))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        assert candidates is None
        return torch.zeros(len(relation), self.n_entities)


def chosen(train: list[Fact], valid: list[Fact], test: list[Fact]) -> dict[str, MemoryWeights]:
    kb = KnowledgeBase.from_facts({"train": train, "valid": valid, "test": test})
    return fit_weights(Constant(kb), Memory.from_facts(kb.split("train"), kb.n_entities), kb)


def world(size: int = 24) -> tuple[list[Fact], list[Fact]]:
    """Training facts that give every validation answer away."""
    train = [("r", f"a{i}", f"b{i % 3}", f"x{i}") for i in range(size)]
    valid = [("r", f"a{i}", f"b{(i + 1) % 3}", f"x{i}") for i in range(size)]
    return train, valid


def test_no_fact_of_test_plays_a_part() -> None:
    """Poisoned: in test, and there alone, the memory is wrong about everything."""
    train, valid = world()
    train += [("s", f"a{i}", "b0", f"x{i}") for i in range(24)]
    clean = [("s", f"a{i}", "b1", f"x{i}") for i in range(24)]
    poison = [("s", f"a{i}", "b1", f"x{(i + 5) % 24}") for i in range(24)]
    weights = chosen(train, valid, clean)
    assert weights["3-2"].sources["0"].share > 0.1
    assert chosen(train, valid, poison) == weights


def test_known_answers_are_no_rivals_while_weights_are_fitted() -> None:
    """What co-occurs with both given entities is known, so it says nothing about other answers."""
    train = [("r", f"a{i}", f"b{i}", f"x{i}") for i in range(20)]
    train += [("r", f"a{i}", f"c{i}", f"y{i}") for i in range(20)]
    valid = [("r", f"a{i}", f"b{i}", f"y{i}") for i in range(20)]
    kb = KnowledgeBase.from_facts({"train": train, "valid": valid})
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    facts = kb.split("valid")[3]
    questions = Questions.score(Constant(kb), memory, facts, 2, kb.known("train", "valid"))
    sources = memory.sources(3, 2)
    blend = Fit(torch.zeros(2 * len(sources), dtype=torch.float64), 1.0)
    likely = ways_to_fit(questions, blend)[2].theta.view(-1, 2)
    assert likely[sources.index("0"), 0] > 0
    for source in ("1", "0+1"):
        assert not likely[sources.index(source)].any()


@pytest.fixture(scope="module")
def slot() -> Slot:
    train, valid = world(12)
    kb = KnowledgeBase.from_facts(
        {"train": train, "valid": [*valid[:9], *(("r", f"a{i}", "b0", "x0") for i in (4, 7, 10))]}
    )
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    known = kb.known("train", "valid")
    questions = Questions.score(Constant(kb), memory, kb.split("valid")[3], 2, known)
    deviation = questions.features.std(dim=0, correction=0)
    deviation[deviation == 0] = 1.0
    prior = learn_prior(memory, kb.split("train"), kb.known("train"))["3-2"]
    scaled = questions._replace(features=questions.features / deviation)
    return Slot(scaled, prior * deviation, memory.sources(3, 2))


def test_the_likeliest_weights_are_where_likelihood_and_prior_are_in_balance(slot: Slot) -> None:
    blend = Fit(slot.prior, 1.0)
    _, second, around, _, alone, _ = ways_to_fit(slot.questions, blend)
    assert second == blend
    for fit, centre in ((around, slot.prior), (alone, torch.zeros_like(slot.prior))):
        gradient = slot.questions.loss(fit.theta, SCALES.index(fit.scale)).gradient
        torch.testing.assert_close(
            gradient, -2 * PRIOR * (fit.theta - centre), rtol=1e-3, atol=0.02
        )


def test_the_weights_that_rank_best_are_kept_near_the_likeliest(slot: Slot) -> None:
    fits = ways_to_fit(slot.questions, Fit(slot.prior, 1.0))
    for likely, ranked in (fits[2:4], fits[4:6]):

        def gain(theta: Tensor, likely: Fit = likely) -> Tensor:
            gained = slot.questions.reciprocal_ranks(theta, likely.scale, soft_step).sum()
            return gained - PRIOR * (theta - likely.theta).square().sum()

        assert ranked.scale == likely.scale
        assert gain(ranked.theta) >= gain(likely.theta)


def test_the_unit_of_a_feature_does_not_matter(slot: Slot) -> None:
    unit = torch.linspace(0.5, 4, len(slot.prior), dtype=torch.float64)
    others = slot.questions._replace(features=slot.questions.features * unit)
    fits = ways_to_fit(slot.questions, Fit(slot.prior, 1.0))
    for fit, other in zip(fits, ways_to_fit(others, Fit(slot.prior / unit, 1.0)), strict=True):
        assert other.scale == fit.scale
        torch.testing.assert_close(other.theta * unit, fit.theta, rtol=1e-3, atol=1e-3)


def made_up(seed: int, n: int, right: float) -> Slot:
    """Questions with two candidates each; the one feature names the answer in a share of them."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < right, 1.0, -1.0)
    questions = Questions(
        rows=torch.arange(n).repeat_interleave(2),
        scores=torch.zeros(2 * n, dtype=torch.float64),
        features=torch.tensor(np.stack([sign, -sign], axis=1)).reshape(-1, 1),
        is_answer=torch.tensor([True, False]).repeat(n),
        rest=torch.full((n, len(SCALES)), -30.0, dtype=torch.float64),
        highest=torch.full((n, 1), -30.0, dtype=torch.float64),
    )
    return Slot(questions, torch.ones(1, dtype=torch.float64), ["0"])


def test_a_position_goes_its_own_way_only_where_it_certainly_gains() -> None:
    """Everywhere the prior is right, in one position it is wrong."""
    usual = {str(i): made_up(i, 200, right=0.9) for i in range(3)}
    fits = choose_fits({**usual, "wrong": made_up(7, 200, right=0.1)})
    assert fits["wrong"].theta < 0
    assert all(fits[name].theta > 0 for name in usual)

    few = made_up(7, 4, right=0.5)
    fits = choose_fits({**usual, "few": few})
    assert fits["few"].theta > 0
    assert CERTAIN > 0


def test_a_gain_is_measured_on_questions_that_were_not_fitted() -> None:
    """Forty features of noise explain the questions that they are fitted on, and no others."""
    n = 120
    rng = np.random.default_rng(0)
    questions = made_up(0, n, right=0.5).questions
    assert questions is not None
    questions = questions._replace(
        scores=torch.tensor(rng.normal(size=2 * n)),  # of a model that guesses, without ties
        features=torch.tensor(rng.normal(size=(2 * n, 40))),
    )
    slot = Slot(questions, torch.zeros(40, dtype=torch.float64), [])

    alone, _, fitted, *_ = ways_to_fit(questions, Fit(slot.prior, 1.0))
    gain = questions.reciprocal_ranks(*fitted) - questions.reciprocal_ranks(*alone)
    assert gain.sum() > 2 * CERTAIN * gain.square().sum().sqrt()
    assert not choose_fits({"2-0": slot})["2-0"].theta.any()


def test_a_single_question_decides_nothing() -> None:
    """The memory is wrong about it, and yet it follows the others."""
    usual = {str(i): made_up(i, 200, right=0.9) for i in range(3)}
    fits = choose_fits({**usual, "lonely": made_up(0, 1, right=0.0)})
    assert fits["lonely"].theta > 0


def test_long_facts_are_fitted_on_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    train, valid = world()
    kb = KnowledgeBase.from_facts({"train": train, "valid": valid, "test": []})
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    features = 3 * CANDIDATES * 2 * len(memory.sources(3, 0))  # of each fact
    assert [len(facts) for facts in facts_to_fit(memory, kb).values()] == [24]

    monkeypatch.setattr("getd.memory.fit.MOST_FEATURES", 7 * features)
    monkeypatch.setattr("getd.memory.fit.LEAST_SAMPLE", 5)
    assert [len(facts) for facts in facts_to_fit(memory, kb).values()] == [7]
    assert [len(facts) for facts in facts_to_fit(memory, kb, 6).values()] == [6]
    monkeypatch.setattr("getd.memory.fit.MOST_FEATURES", 4 * features)
    assert [len(facts) for facts in facts_to_fit(memory, kb).values()] == [5]


def test_an_arity_without_validation_facts_follows_the_others() -> None:
    facts = [("r", f"a{i % 10}", f"b{i % 7}", f"x{i % 10}") for i in range(69)]
    train = [*facts[:50], *(("s", f"a{i}", f"x{i}") for i in range(5))]
    kb = KnowledgeBase.from_facts({"train": train, "valid": facts[50:]})
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    weights = fit_weights(Constant(kb), memory, kb)
    assert set(weights) == {"2-0", "2-1", "3-0", "3-1", "3-2"}
    assert weights["2-0"].sources


def test_the_blend_fits_the_positions_together() -> None:
    """A position without questions shows it: the loss of all others is in balance there."""
    slots = {"a": made_up(0, 30, right=0.8), "b": made_up(1, 50, right=0.7)}
    silent = Slot(None, torch.ones(1, dtype=torch.float64), ["0"])
    theta, scale = choose_fits({**slots, "silent": silent})["silent"]
    gradient = 0.0
    for slot in slots.values():
        assert slot.questions is not None
        gradient += float(slot.questions.loss(theta, SCALES.index(scale)).gradient)
    assert gradient == pytest.approx(-2 * BLEND_PRIOR * float(theta - 1), abs=1e-3)

"""Memory weights are fitted on validation alone, and chosen on facts not fitted on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import PRIOR, SCALES, Questions, fit_weights, fits, soft_step
from getd.memory.memory import Memory
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


def test_a_fit_that_does_not_hold_for_other_facts_is_not_taken() -> None:
    """The memory is right about every other validation fact and wrong about those between."""
    train, valid = world()
    contrary = [
        fact if i % 2 == 0 else (*fact[:3], f"x{(i + 2) % 24}") for i, fact in enumerate(valid)
    ]
    assert chosen(train, valid, valid[:1])["3-2"].sources
    assert chosen(train, contrary, valid[:1])["3-2"] == MemoryWeights()


def test_known_answers_are_no_rivals_while_weights_are_fitted() -> None:
    """What co-occurs with both given entities is known, so it says nothing about other answers."""
    train = [("r", f"a{i}", f"b{i}", f"x{i}") for i in range(20)]
    train += [("r", f"a{i}", f"c{i}", f"y{i}") for i in range(20)]
    valid = [("r", f"a{i}", f"b{i}", f"y{i}") for i in range(20)]
    weights = chosen(train, valid, valid[:1])["3-2"].sources
    assert weights["0"].share > 0
    for source in ("1", "0+1"):
        assert (weights[source].share, weights[source].log_share) == (0.0, 0.0)


@pytest.fixture(scope="module")
def questions() -> Questions:
    train, valid = world(12)
    kb = KnowledgeBase.from_facts(
        {"train": train, "valid": [*valid[:9], *(("r", f"a{i}", "b0", "x0") for i in (4, 7, 10))]}
    )
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    model = Constant(kb)
    return Questions.score(model, memory, kb.split("valid")[3], 2, kb.known("train", "valid"))


def test_the_likeliest_weights_are_where_likelihood_and_prior_are_in_balance(
    questions: Questions,
) -> None:
    _, (theta, scale), _ = fits(questions)
    free = theta.clone().requires_grad_()
    (questions.loss(free, SCALES.index(scale)) + PRIOR * free.square().sum()).backward()
    assert free.grad is not None
    assert theta.abs().max() > 0.05
    assert free.grad.abs().max() < 0.02


def test_the_weights_that_rank_best_are_kept_near_the_likeliest(questions: Questions) -> None:
    _, (likely, scale), (ranked, same) = fits(questions)
    free = ranked.clone().requires_grad_()
    loss = (
        -questions.reciprocal_ranks(free, scale, soft_step).sum()
        + PRIOR * (free - likely).square().sum()
    )
    loss.backward()
    assert same == scale
    assert free.grad is not None
    assert free.grad.abs().max() < 0.02


def test_weights_are_those_of_the_features_as_they_are() -> None:
    """They are fitted to features divided by their deviation, and given for those that are not."""
    train, valid = world()
    kb = KnowledgeBase.from_facts({"train": train, "valid": valid})
    model, memory = Constant(kb), Memory.from_facts(kb.split("train"), kb.n_entities)
    questions = Questions.score(model, memory, kb.split("valid")[3], 2, kb.known("train", "valid"))
    deviation = questions.features.std(dim=0, correction=0)
    deviation[deviation == 0] = 1.0
    fitted = fits(questions._replace(features=questions.features / deviation))
    sources = memory.sources(3, 2)
    weights = fit_weights(model, memory, kb)["3-2"]
    expected = [theta / deviation for theta, scale in fitted[1:] if scale == weights.scale]
    assert any(torch.allclose(weights.as_tensor(sources), theta, rtol=1e-6) for theta in expected)

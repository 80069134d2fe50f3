"""Questions reduced to what a memory can change, against scores written out."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.algebra.convex import minimise
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Memory
from getd.memory.questions import SCALES, Questions, maximise_smoothly
from getd.models.base import ModelSizes, ScoringModel

N_ENTITIES = 11


class Table(ScoringModel):
    """Scores drawn once."""

    def __init__(self, arities: tuple[int, ...]) -> None:
        super().__init__(ModelSizes(N_ENTITIES, 2, arities))
        self.scores = torch.randn(2, N_ENTITIES, generator=torch.Generator().manual_seed(3))

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        assert candidates is None
        return self.scores[relation].clone()


def facts_of(arity: int, rows: int, seed: int) -> Facts:
    rng = np.random.default_rng(seed)
    return Facts(rng.integers(0, 2, rows), rng.integers(0, N_ENTITIES, (rows, arity)))


def written_out(
    model: ScoringModel | None,
    memory: Memory,
    facts: Facts,
    position: int,
    known: KnownAnswers,
    theta: Tensor,
    scale: float,
) -> Tensor:
    """The scores of all candidates, known answers at minus infinity."""
    relation, entities = facts.to_tensors()
    scores = torch.zeros(len(facts), N_ENTITIES, dtype=torch.float64)
    if model is not None:
        scores += scale * model.score_candidates(relation, entities, position)
    features = memory.features(relation, entities, position, leave_out=model is None)
    scores[features.rows, features.candidates] += features.values @ theta
    for row in range(len(facts)):
        answers = known.lookup(
            facts.relation[row : row + 1], facts.entities[row : row + 1], position
        )
        for other in answers.values:
            if other != facts.entities[row, position]:
                scores[row, other] = -torch.inf
    return scores


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize("left_out", [False, True])
def test_losses_and_ranks_are_those_of_all_scores(arity: int, left_out: bool) -> None:
    train = facts_of(arity, 40, seed=arity)
    memory = Memory.from_facts({arity: train}, N_ENTITIES)
    facts = train.take(slice(0, 9)) if left_out else facts_of(arity, 9, seed=50 + arity)
    model = None if left_out else Table((arity,))
    known = KnownAnswers.build([{arity: train}, {arity: facts}])

    for position in range(arity):
        if model is None:
            questions = Questions.leave_out(memory, facts, position, known)
        else:
            questions = Questions.score(model, memory, facts, position, known)
        n_weights = 2 * len(memory.sources(arity, position))
        theta = torch.randn(n_weights, generator=torch.Generator().manual_seed(1)).double()

        number = 7
        scores = written_out(model, memory, facts, position, known, theta, SCALES[number])
        answers = torch.tensor(facts.entities[:, position])
        own = scores.gather(1, answers[:, None])
        loss = (torch.logsumexp(scores, dim=1) - own[:, 0]).sum()
        assert_close(questions.loss(theta, number).value, loss, rtol=1e-5, atol=1e-6)

        if model is not None:
            above = (scores > own).sum(dim=1)
            level = (scores == own).sum(dim=1) - 1
            ranks = questions.reciprocal_ranks(theta, SCALES[number])
            assert_close(ranks, 1 / (1 + above + level / 2).double())


@pytest.fixture(scope="module")
def questions() -> Questions:
    train = facts_of(3, 60, seed=0)
    memory = Memory.from_facts({3: train}, N_ENTITIES)
    facts = facts_of(3, 20, seed=9)
    return Questions.score(Table((3,)), memory, facts, 1, KnownAnswers.build([{3: train}]))


@pytest.mark.parametrize("number", [0, 4, 10])
def test_derivatives_are_those_that_autograd_finds(questions: Questions, number: int) -> None:
    theta = torch.linspace(-1, 1, questions.features.shape[1], dtype=torch.float64)

    def value(theta: Tensor) -> Tensor:
        return questions.loss(theta, number).value

    def gradient(theta: Tensor) -> Tensor:
        return questions.loss(theta, number).gradient

    bowl = questions.loss(theta, number)
    step = 1e-5
    unit = torch.eye(len(theta), dtype=torch.float64)
    slopes = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in unit]
    bends = [(gradient(theta + step * e) - gradient(theta - step * e)) / (2 * step) for e in unit]
    assert_close(bowl.gradient, torch.stack(slopes), rtol=1e-5, atol=1e-6)
    assert_close(bowl.hessian, torch.stack(bends), rtol=1e-4, atol=1e-5)


def test_at_the_minimum_loss_and_prior_are_in_balance(questions: Questions) -> None:
    centre = torch.full((questions.features.shape[1],), 0.2, dtype=torch.float64)
    loss = partial(questions.loss, scale=6)
    for start in (centre, centre + 3):
        theta, least = minimise(loss, start, centre, prior=0.7)
        assert_close(loss(theta).gradient, -1.4 * (theta - centre), rtol=1e-3, atol=1e-3)
        assert least == pytest.approx(
            float(loss(theta).value + 0.7 * (theta - centre).square().sum())
        )


def test_climbing_stops_near_the_start() -> None:
    start = torch.tensor([1.0, -1.0], dtype=torch.float64)
    top = maximise_smoothly(lambda theta: 2 * theta[0] - theta[1] ** 2, start, prior=0.5)
    assert_close(top, torch.tensor([3.0, -1 / 3], dtype=torch.float64), rtol=1e-4, atol=1e-4)

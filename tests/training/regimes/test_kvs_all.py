"""Questions once, with all entities as candidates or some drawn ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.runs.config import TrainSettings
from getd.training.checkpoint import copy_weights
from getd.training.losses.base import LabelledScores
from getd.training.losses.multi_answer import answer_softmax
from getd.training.regimes.base import Batch
from getd.training.regimes.kvs_all import KvsAll, KvsAllStep
from tests.training.regimes.test_gradients import N_ENTITIES, begin, blocks, small_model

CPU = torch.device("cpu")


def prepare(settings: TrainSettings, number: int = 0) -> KvsAllStep:
    known = KnownAnswers.build([blocks()])
    regime = KvsAll(blocks(), known, N_ENTITIES, settings, CPU)
    step = regime.prepare(Batch(1, np.arange(10), seed=(1, number)))
    assert isinstance(step, KvsAllStep)
    return step


def settings(drawn: int | None, **others: float) -> TrainSettings:
    values = {"regime": "kvsall", "precision": "fp32", "drawn_candidates": drawn, **others}
    return TrainSettings.model_validate(values)


def test_candidates_are_the_answers_of_the_batch_and_some_drawn_entities() -> None:
    everything = prepare(settings(None))
    assert everything.candidates is None
    assert prepare(settings(N_ENTITIES)).candidates is None

    step = prepare(settings(3))
    assert step.candidates is not None
    assert step.candidates.tolist() == sorted(set(step.candidates.tolist()))
    assert torch.equal(step.answers[0], everything.answers[0])
    assert torch.equal(step.candidates[step.answers[1]], everything.answers[1])
    n_answers = len(everything.answers[1].unique())
    assert n_answers < len(step.candidates) <= n_answers + 3


def test_drawn_candidates_stand_for_all_entities_that_are_no_answers() -> None:
    """Whatever is drawn, their weights add up to the number of entities."""
    for number in range(20):
        step = prepare(settings(5), number)
        assert step.candidates is not None
        assert step.added is not None
        answers = step.answers[1].unique()
        assert not step.added[answers].any()
        total = step.added.exp().sum().item()
        has_others = len(step.candidates) > len(answers)
        assert total == pytest.approx(N_ENTITIES if has_others else len(answers))


def test_nothing_stands_for_the_others_where_all_entities_are_answers() -> None:
    facts = Facts(np.zeros(6, dtype=np.int64), np.array([[0, i] for i in range(6)]))
    regime = KvsAll({2: facts}, KnownAnswers.build([{2: facts}]), 6, settings(2), CPU)
    step = regime.prepare(Batch(1, np.arange(1), seed=(1, 0)))
    assert isinstance(step, KvsAllStep)
    assert step.candidates is not None
    assert step.candidates.tolist() == list(range(6))
    assert step.added is not None
    assert not step.added.any()


def test_each_batch_draws_its_own_and_a_seed_draws_them_again() -> None:
    def candidates(number: int, seed: int = 0) -> list[int]:
        chosen = settings(2, seed=seed)
        drawn = [prepare(chosen, number + i).candidates for i in range(8)]
        return [int(each.sum()) for each in drawn if each is not None]

    assert candidates(0) == candidates(0)
    assert candidates(0) != candidates(8)
    assert candidates(0) != candidates(0, seed=1)


@pytest.mark.parametrize("form", ["getd", "encoder", "simple", "nalp"])
def test_the_loss_and_its_gradients_are_those_of_the_candidates_alone(form: str) -> None:
    chosen = settings(2, label_smoothing=0.2, question_weight=1.0)
    step = prepare(chosen)
    model = small_model(form, (2, 3, 4))
    weights = copy_weights(model)
    begin(model, weights)
    loss = step.backward(model)
    found = {
        name: p.grad.to_dense().clone()
        for name, p in model.named_parameters()
        if p.grad is not None
    }

    begin(model, weights)
    assert step.position is not None
    assert step.added is not None
    scores = model.score_candidates(step.relation, step.entities, step.position, step.candidates)
    scores = scores + step.added
    labels = torch.zeros_like(scores)
    labels[step.answers] = 1
    counts = labels.sum(dim=1, keepdim=True)
    expected = answer_softmax(LabelledScores(scores, labels, counts / counts.sum()), chosen)
    expected.backward()  # type: ignore[no-untyped-call]
    assert loss == pytest.approx(float(expected.detach()), rel=1e-6)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            wanted = parameter.grad.to_dense()
            torch.testing.assert_close(found[name], wanted, rtol=1e-5, atol=1e-8)

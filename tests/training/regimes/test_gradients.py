"""A step leaves the gradients of the formula, for every model, whatever shares a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.arrays import Ids
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ModelSizes, ScoringModel
from getd.models.registry import MODELS, make_model, model_settings
from getd.runs.config import TrainSettings
from getd.training.checkpoint import copy_weights
from getd.training.losses import KVSALL_LOSSES
from getd.training.losses.base import LabelledScores
from getd.training.regimes.base import Batch
from getd.training.regimes.kvs_all import KvsAll
from getd.training.regimes.one_vs_all import OneVsAll
from tests.models.test_every_model import FORMS
from tests.training.regimes.reference_one_vs_all import plain_loss

N_ENTITIES, N_RELATIONS = 9, 3


def blocks(seed: int = 0) -> dict[int, Facts]:
    rng = np.random.default_rng(seed)
    return {
        n: Facts(rng.integers(0, N_RELATIONS, 30), rng.integers(0, N_ENTITIES // 2, (30, n)))
        for n in (2, 3, 4)
    }


def small_model(form: str, arities: tuple[int, ...]) -> ScoringModel:
    name, values = FORMS[form]
    generator = torch.Generator().manual_seed(1)
    return make_model(
        name, model_settings(name, values), ModelSizes(N_ENTITIES, N_RELATIONS, arities), generator
    ).double()


def begin(model: ScoringModel, weights: dict[str, Tensor]) -> None:
    """No gradients, the statistics of batch norm and the dropout as before."""
    model.zero_grad()
    model.load_state_dict(weights)
    torch.manual_seed(0)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "settings",
    [TrainSettings(), TrainSettings(label_smoothing=0.1, relation_loss=0.5, n3=0.2)],
    ids=["paper", "everything"],
)
def test_the_gradients_of_a_step_are_those_of_the_formula(
    name: str, settings: TrainSettings
) -> None:
    facts_by_arity = {
        n: facts
        for n, facts in blocks().items()
        if n == 2 or not MODELS[FORMS[name][0]].model.binary_only
    }
    known = KnownAnswers.build([facts_by_arity])
    regime = OneVsAll(facts_by_arity, known, N_ENTITIES, settings, torch.device("cpu"))
    model = small_model(name, tuple(facts_by_arity))
    rows = np.array([3, 1, 7, 20, 11])
    for block, facts in enumerate(facts_by_arity.values()):
        before = copy_weights(model)
        for _ in range(2):  # the second time, buffers are used again
            begin(model, before)
            loss = regime.prepare(Batch(block, rows)).backward(model)
        left = {key: p.grad.to_dense() for key, p in model.named_parameters() if p.grad is not None}
        begin(model, before)
        expected = plain_loss(model, facts.take(rows), known, settings)
        expected.backward()
        assert loss == pytest.approx(expected.item())
        grads = {
            key: p.grad.to_dense() for key, p in model.named_parameters() if p.grad is not None
        }
        assert left.keys() == grads.keys()
        for key, grad in grads.items():
            assert torch.allclose(left[key], grad, rtol=1e-6, atol=1e-9), key


@pytest.mark.parametrize(("smoothing", "power"), [(0.0, 0.0), (0.2, 0.0), (0.2, 0.5), (0.0, 1.0)])
@pytest.mark.parametrize("form", FORMS)
def test_the_gradients_of_questions_with_their_answers_are_those_of_the_formula(
    form: str, smoothing: float, power: float
) -> None:
    arity = 2 if MODELS[FORMS[form][0]].model.binary_only else 3
    facts_by_arity = {arity: blocks()[arity]}
    known = KnownAnswers.build([facts_by_arity])
    settings = TrainSettings(
        regime="kvsall",
        label_smoothing=smoothing,
        n3=0.1,
        question_weight=power,
        relation_loss=0.7,
    )
    regime, model = (
        KvsAll(facts_by_arity, known, N_ENTITIES, settings, torch.device("cpu")),
        small_model(form, (arity,)),
    )
    slots: list[int | None] = [*range(arity), None]
    for block, position in enumerate(slots):
        before = copy_weights(model)
        begin(model, before)
        step = regime.prepare(Batch(block, np.array([3, 1, 7, 8])))
        loss = step.backward(model)
        left = {key: p.grad.to_dense() for key, p in model.named_parameters() if p.grad is not None}
        begin(model, before)
        if position is None:
            scores = model.score_relations(step.entities)
            expected = torch.zeros((), dtype=torch.float64)
        else:
            scores = model.score_candidates(step.relation, step.entities, position)
            factors = model.given_factors(step.relation, step.entities, position)
            expected = 0.1 * torch.stack([(f.abs() ** 3).sum() for f in factors]).sum() / 4
        labels = torch.zeros_like(scores)
        labels[step.answers] = 1
        softmax = KVSALL_LOSSES["softmax"]
        weights = labels.sum(dim=1) ** power
        share = 0.7 if position is None else 1.0
        for row, weight in enumerate(weights / weights.sum()):
            question = LabelledScores(scores[row : row + 1], labels[row : row + 1])
            expected = expected + share * weight * softmax(question, settings)
        expected.backward()
        assert loss == pytest.approx(expected.item())
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:
                assert torch.allclose(left[key], parameter.grad.to_dense(), rtol=1e-6, atol=1e-9), (
                    key
                )


def test_with_a_relation_loss_entities_ask_for_all_relations_between_them() -> None:
    facts = blocks()[3]
    settings = TrainSettings(regime="kvsall", relation_loss=1.0)
    known = KnownAnswers.build([{3: facts}])
    regime = KvsAll({3: facts}, known, N_ENTITIES, settings, torch.device("cpu"))
    assert len(regime.sizes) == 4
    step = regime.prepare(Batch(3, np.arange(regime.sizes[3])))
    assert step.position is None

    rows, relations = step.answers
    answered = torch.column_stack([relations, step.entities[rows]]).tolist()
    assert sorted(answered) == np.unique(facts.rows(), axis=0).tolist()
    assert len(step.entities) == len(step.entities.unique(dim=0))


def other_answers(
    known: KnownAnswers, facts: Facts, rows: Ids, positions: Sequence[int | None]
) -> list[tuple[int, int]]:
    """Questions, numbered row by row, and their answers but the own: one look-up each."""
    pairs = []
    for i, row in enumerate(rows.tolist()):
        for slot, position in enumerate(positions):
            own = facts.relation[row] if position is None else facts.entities[row, position]
            answers = known.lookup(facts.relation[[row]], facts.entities[[row]], position).values
            pairs += [(i * len(positions) + slot, int(x)) for x in answers if x != own]
    return pairs


def test_a_batch_leaves_out_the_known_answers_but_the_own() -> None:
    facts_by_arity = blocks(3)
    known = KnownAnswers.build([facts_by_arity])
    settings = TrainSettings(relation_loss=1.0)
    regime = OneVsAll(facts_by_arity, known, N_ENTITIES, settings, torch.device("cpu"))
    rows = np.array([4, 4, 0, 29])
    for block, facts in enumerate(facts_by_arity.values()):
        batch = regime.gather(Batch(block, rows))
        positions = other_answers(known, facts, rows, range(facts.arity))
        relations = other_answers(known, facts, rows, [None])
        assert [*positions, *relations]
        assert batch.left_out_relations is not None
        for pairs, expected in ((batch.left_out, positions), (batch.left_out_relations, relations)):
            assert list(zip(*(ids.tolist() for ids in pairs), strict=True)) == expected

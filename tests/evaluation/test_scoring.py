"""Filtered scores against the scores of the model, and probabilities against slow sums."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

import getd
from getd.evaluation.scoring import BATCH_ROWS, filtered_scores, held_out_loss, log_probabilities
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.deadline import DeadlineExceeded, deadline
from getd.models.getd import GETD
from tests.reference import known_answers
from tests.tiny import all_facts, untrained_getd


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return getd.load("demo")


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> GETD:
    return untrained_getd(kb)


def test_log_probabilities_are_those_of_a_softmax_without_other_known_answers(
    kb: KnowledgeBase, model: GETD
) -> None:
    facts = kb.split("valid")[3].take(slice(0, 4))
    every = all_facts(kb)
    log_probability = log_probabilities(model, facts, kb.known(), temperature=0.7)
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
        expected = math.log(kept[str(fact[position + 1])] / sum(kept.values()))
        assert log_probability[row, position] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("temperature", [None, 0.7])
@pytest.mark.parametrize("budget", [1, 2000, 2**22])
def test_filtered_scores_are_those_of_the_model_but_for_known_answers(
    kb: KnowledgeBase, model: GETD, budget: int, temperature: float | None
) -> None:
    facts = kb.split("valid")[3].take(slice(0, 30))
    known = kb.known()
    rows = max(1, min(BATCH_ROWS, budget // kb.n_entities))
    expected_order = [(start, position) for start in range(0, 30, rows) for position in (2, 0)]
    order = []
    for batch in filtered_scores(
        model, facts, (2, 0), known, temperature=temperature, budget=budget
    ):
        order.append((batch.rows.start, batch.position))
        assert batch.facts == facts.take(batch.rows)
        assert batch.answers.tolist() == batch.facts.entities[:, batch.position].tolist()

        relation, entities = batch.facts.to_tensors()
        scores = model.score_candidates(relation, entities, batch.position).detach()
        answers = known.lookup(batch.facts.relation, batch.facts.entities, batch.position)
        others = answers.others(batch.answers.numpy())
        scores[torch.tensor(others[0]), torch.tensor(others[1])] = -torch.inf
        torch.testing.assert_close(batch.scores, scores / (temperature or 1.0))
        assert not batch.scores.requires_grad
    assert order == expected_order


def test_filtered_scores_leave_the_modes_of_the_model_and_of_gradients_alone(
    kb: KnowledgeBase,
) -> None:
    training = untrained_getd(kb).train()
    for _ in filtered_scores(training, kb.split("valid")[3], [0], kb.known()):
        assert training.training
        assert torch.is_grad_enabled()


def test_scoring_stops_at_the_deadline(kb: KnowledgeBase, model: GETD) -> None:
    with deadline(0.0), pytest.raises(DeadlineExceeded, match="too long"):
        next(filtered_scores(model, kb.split("valid")[3], [0], kb.known()))


def test_the_held_out_loss_is_minus_the_mean_log_probability(
    kb: KnowledgeBase, model: GETD
) -> None:
    blocks = kb.split("valid")
    tables = [log_probabilities(model, facts, kb.known(), 1.0) for facts in blocks.values()]
    mean = sum(table.sum() for table in tables) / sum(table.size for table in tables)
    assert held_out_loss(model, blocks, kb.known()) == pytest.approx(-mean, rel=1e-5)

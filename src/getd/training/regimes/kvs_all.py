"""Questions with all their answers."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.models.base import DotProductModel, ScoringModel
from getd.training.losses.accumulate import LossSum
from getd.training.losses.softmax import multi_answer_loss
from getd.training.regimes.base import Batch, Pairs, Regime, Work, cubes, to_device


class QuestionBatch(NamedTuple):
    """Questions with one position open, and all their answers."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    position: int
    answers: Pairs  # rows, ascending, and entities


class KvsAll(Regime):
    """Each question once, with all its answers."""

    def set_up(self) -> list[int]:
        self._buffers: dict[Tensor, Tensor] = {}
        self._questions = [
            (_distinct_questions(facts, position), position)
            for facts in self._blocks
            for position in range(facts.arity)
        ]
        return [len(facts) for facts, _ in self._questions]

    def prepare(self, batch: Batch) -> Work:
        facts, position = self._questions[batch.block]
        facts = facts.take(batch.rows)
        answers = self._known.lookup(facts.relation, facts.entities, position)
        arrays = (facts.relation, facts.entities, answers.rows, answers.values)
        relation, entities, rows, values = to_device(arrays, self._device)
        return partial(self._backward, QuestionBatch(relation, entities, position, (rows, values)))

    def _backward(self, batch: QuestionBatch, model: ScoringModel) -> Tensor:
        """The mean loss of a batch of questions; the parameters, which have no gradients, get them."""
        settings, losses = self._settings, LossSum(self._buffers, self._settings.label_smoothing)
        if settings.kvsall_loss == "softmax" and isinstance(model, DotProductModel):
            query, table = (
                model.query(batch.relation, batch.entities, batch.position),
                model.candidates(batch.position),
            )
            nothing = batch.relation[:0]
            losses.softmax(query, table, batch.answers, (nothing, nothing), 1 / len(query))
        else:
            scores = model.score_candidates(batch.relation, batch.entities, batch.position)
            labels = torch.zeros_like(scores)
            labels[batch.answers] = 1
            losses.add(
                multi_answer_loss(scores, labels, settings.kvsall_loss, settings.label_smoothing)
            )
        if settings.n3:
            losses.add(
                settings.n3
                * cubes(model.given_factors(batch.relation, batch.entities, batch.position))
            )
        return losses.backward()


def _distinct_questions(facts: Facts, position: int) -> Facts:
    """One fact for each question."""
    others = [0, *(j + 1 for j in range(facts.arity) if j != position)]
    _, first = np.unique(facts.rows()[:, others], axis=0, return_index=True)
    return facts.take(first)

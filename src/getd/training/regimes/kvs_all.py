"""Questions with all their answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.models.base import DotProductModel, ScoringModel
from getd.runs.config import TrainSettings
from getd.training.losses import KVSALL_LOSSES
from getd.training.losses.base import LabelledScores, Pairs
from getd.training.losses.fused_softmax import LossSum
from getd.training.losses.multi_answer import answer_softmax
from getd.training.losses.regularisers import n3
from getd.training.regimes.base import Batch, Buffers, Regime


class KvsAll(Regime):
    """Each question once, with all its answers; a block is a position of an arity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._questions: list[tuple[Facts, int]] = []
        for facts in self.blocks:
            for position in range(facts.arity):
                self._questions.append((_distinct_questions(facts, position), position))
        self.sizes = [len(facts) for facts, _ in self._questions]

    def prepare(self, batch: Batch) -> KvsAllStep:
        questions, position = self._questions[batch.block]
        facts = questions.take(batch.rows)
        answers = self.known.lookup(facts.relation, facts.entities, position)
        rows = torch.tensor(answers.rows, device=self.device)
        pairs = (rows, torch.tensor(answers.values, device=self.device))
        relation, entities = facts.to_tensors(self.device)
        return KvsAllStep(relation, entities, position, pairs, self.settings, self.buffers)


@dataclass(frozen=True)
class KvsAllStep:
    """Questions with one open position, and all their answers; the loss is their weighted mean."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    position: int
    answers: Pairs  # rows, ascending, and entities
    settings: TrainSettings
    buffers: Buffers

    def backward(self, model: ScoringModel) -> float:
        settings = self.settings
        question = (self.relation, self.entities, self.position)
        loss = KVSALL_LOSSES[settings.kvsall_loss]
        total = LossSum(self.buffers, settings)

        weights = self._weights()
        if loss is answer_softmax and isinstance(model, DotProductModel):
            with total.rounding(self.entities.device):
                query = model.query(*question)
            table = model.candidates(self.position)
            nothing = self.relation[:0]
            weight = 1 / len(query) if weights is None else weights
            total.add_softmax(query, table, self.answers, (nothing, nothing), weight)
        else:
            scores = model.score_candidates(*question)
            labels = torch.zeros_like(scores)
            labels[self.answers] = 1
            total.add(loss(LabelledScores(scores, labels, weights), settings))

        if settings.n3:
            total.add(settings.n3 * n3(model.given_factors(*question)))
        return total.backward()

    def _weights(self) -> Tensor | None:
        """The weights of the questions, ``(b, 1)``, which grow with the number of their answers."""
        power = self.settings.question_weight
        if not power:
            return None
        counts = torch.bincount(self.answers[0], minlength=len(self.relation))
        weights = counts.double().pow(power)
        return (weights / weights.sum()).unsqueeze(1)


def _distinct_questions(facts: Facts, position: int) -> Facts:
    """One fact for each question that opens this position."""
    questions = np.delete(facts.rows(), position + 1, axis=1)
    _, first = np.unique(questions, axis=0, return_index=True)
    return facts.take(first)

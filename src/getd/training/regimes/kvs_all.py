"""Distinct questions with all their answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known_answers import Position
from getd.models.base import DotProductModel, ScoringModel, rows_of
from getd.runs.config import TrainSettings
from getd.training.losses import KVSALL_LOSSES
from getd.training.losses.base import LabelledScores, Loss, Pairs
from getd.training.losses.each_answer import each_answer_gradients
from getd.training.losses.fused_softmax import Kernel, LossSum, softmax_gradients
from getd.training.losses.multi_answer import answer_softmax, each_answer
from getd.training.losses.regularisers import n3
from getd.training.regimes.base import Batch, Buffers, Regime

# Losses that have a kernel of their own, which never keeps all scores.
FUSED: dict[Loss[LabelledScores], Kernel] = {
    answer_softmax: softmax_gradients,
    each_answer: each_answer_gradients,
}


class KvsAll(Regime):
    """Each question once, with all its answers; a block is a slot of an arity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._questions: list[tuple[Facts, Position]] = []
        for facts in self.blocks:
            slots: list[Position] = [*range(facts.arity)]
            if self.settings.relation_loss:
                slots.append(None)
            for slot in slots:
                self._questions.append((_distinct_questions(facts, slot), slot))
        self.sizes = [len(facts) for facts, _ in self._questions]

    def prepare(self, batch: Batch) -> KvsAllStep:
        questions, position = self._questions[batch.block]
        facts = questions.take(batch.rows)
        answers = self.known.lookup(facts.relation, facts.entities, position)
        rows = torch.tensor(answers.rows, device=self.device)
        pairs = (rows, torch.tensor(answers.values, device=self.device))
        relation, entities = facts.to_tensors(self.device)
        step = KvsAllStep(relation, entities, position, pairs, self.settings, self.buffers)
        return step if position is None else self._with_drawn_candidates(step, batch)

    def _with_drawn_candidates(self, step: KvsAllStep, batch: Batch) -> KvsAllStep:
        """Leave the answers of the batch and some other entities as candidates.

        What is added to the scores of the others lets them stand for all entities that are no
        answers.
        """
        number = self.settings.drawn_candidates
        if number is None or number >= self.n_entities:
            return step
        rng = np.random.default_rng([self.settings.seed, *batch.seed])
        drawn = torch.tensor(rng.integers(0, self.n_entities, number), device=self.device)

        rows, answers = step.answers
        candidates, columns = torch.unique(torch.cat([answers, drawn]), return_inverse=True)
        pairs = (rows, columns[: len(answers)])

        is_other = torch.ones(len(candidates), dtype=torch.bool, device=self.device)
        is_other[pairs[1]] = False
        n_others = int(is_other.sum())
        n_answers = len(candidates) - n_others
        weight = (self.n_entities - n_answers) / n_others if n_others else 1.0
        return replace(step, answers=pairs, candidates=candidates, added=is_other * log(weight))


@dataclass(frozen=True)
class KvsAllStep:
    """Questions with one open slot, and all their answers; the loss is their weighted mean."""

    relation: Tensor  # (b,)
    entities: Tensor  # (b, n)
    position: Position  # None: the relation is open
    answers: Pairs  # rows, ascending, and entities or relations
    settings: TrainSettings
    buffers: Buffers
    candidates: Tensor | None = None  # entities, ascending, that ``answers`` number; None: all
    added: Tensor | None = None  # to the scores of these candidates

    def backward(self, model: ScoringModel) -> float:
        settings = self.settings
        loss = KVSALL_LOSSES[settings.kvsall_loss]
        kernel = FUSED.get(loss)
        total = LossSum(self.buffers, settings, kernel)
        scale = settings.relation_loss if self.position is None else 1.0
        weights = self._weights()

        if kernel is not None and self._has_query(model):
            with total.rounding(self.entities.device):
                query, table = self._query(model)
            weight = scale / len(query) if weights is None else scale * weights
            nothing = self.relation[:0]
            total.add_softmax(query, table, self.answers, (nothing, nothing), weight)
        else:
            scores = self._scores(model)
            labels = torch.zeros_like(scores)
            labels[self.answers] = 1
            total.add(scale * loss(LabelledScores(scores, labels, weights), settings))

        if settings.n3 and self.position is not None:
            factors = model.given_factors(self.relation, self.entities, self.position)
            total.add(settings.n3 * n3(factors))
        return total.backward()

    def _has_query(self, model: ScoringModel) -> TypeGuard[DotProductModel]:
        if not isinstance(model, DotProductModel):
            return False
        return self.position is not None or model.relation_is_dot_product

    def _query(self, model: DotProductModel) -> tuple[Tensor, Tensor]:
        """The queries ``(b, d)``, and the table of their candidates."""
        if self.position is None:
            return model.relation_query(self.entities), model.relation_candidates()
        query = model.query(self.relation, self.entities, self.position)
        table = model.candidates(self.position)
        if self.candidates is None or self.added is None:
            return query, table

        # What is added is one more dimension, in which all queries are 1.
        vectors = rows_of(table, self.candidates)
        query = torch.cat([query, torch.ones_like(query[:, :1])], dim=1)
        return query, torch.cat([vectors, self.added.to(vectors).unsqueeze(1)], dim=1)

    def _scores(self, model: ScoringModel) -> Tensor:
        """The scores of all candidates, ``(b, m)``."""
        if self.position is None:
            return model.score_relations(self.entities)
        candidates = self.candidates
        scores = model.score_candidates(self.relation, self.entities, self.position, candidates)
        return scores if self.added is None else scores + self.added.to(scores)

    def _weights(self) -> Tensor | None:
        """The weights of the questions, ``(b, 1)``, which grow with the number of their answers."""
        power = self.settings.question_weight
        if not power:
            return None
        counts = torch.bincount(self.answers[0], minlength=len(self.relation))
        weights = counts.double().pow(power)
        return (weights / weights.sum()).unsqueeze(1)


def _distinct_questions(facts: Facts, position: Position) -> Facts:
    """One fact for each question that opens this slot."""
    column = 0 if position is None else position + 1
    questions = np.delete(facts.rows(), column, axis=1)
    _, first = np.unique(questions, axis=0, return_index=True)
    return facts.take(first)

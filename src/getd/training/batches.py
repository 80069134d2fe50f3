"""Batches of one arity each, drawn in proportion, and what the losses need beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from getd.facts.facts import Facts
from getd.facts.known import KnownAnswers
from getd.models.base import DotProductModel
from getd.training.loss import filtered_softmax_loss, multi_answer_loss
from getd.training.settings import TrainSettings


@dataclass(frozen=True)
class Batch:
    """Facts of one arity, or questions with one position open; rows of a block of the regime."""

    block: int
    rows: np.ndarray


def shuffled_batches(sizes: Sequence[int], batch_size: int, generator: torch.Generator) -> list[Batch]:
    """Every row of every block once, in a random order, a last batch of one row joined to the one before."""
    batches = []
    for block, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator).numpy()
        starts = list(range(0, size, batch_size))
        if len(starts) > 1 and size - starts[-1] == 1:
            starts.pop()
        batches += [Batch(block, order[a:b]) for a, b in zip(starts, [*starts[1:], size], strict=True)]
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


class OneVsAll:
    """All positions of each fact against all candidates: the paper's loss."""

    def __init__(
        self, blocks: Mapping[int, Facts], known: KnownAnswers, settings: TrainSettings, device: torch.device
    ) -> None:
        self._blocks, self._known, self._settings, self._device = list(blocks.values()), known, settings, device
        self.sizes = [len(facts) for facts in self._blocks]

    def loss(self, model: DotProductModel, batch: Batch) -> Tensor:
        """The mean loss of a batch over facts and positions."""
        facts, smoothing = self._blocks[batch.block].take(batch.rows), self._settings.label_smoothing
        relation, entities = self._tensor(facts.relation), self._tensor(facts.entities)
        queries = model.queries(relation, entities)
        total = queries.new_zeros(())
        for position in range(facts.arity):
            left_out = self._left_out(facts, position)
            args = (
                queries[:, position].contiguous(),
                model.candidates(position),
                entities[:, position],
                left_out,
                smoothing,
            )
            total = total + filtered_softmax_loss(*args)
        loss = total / (len(facts) * facts.arity)
        if self._settings.relation_loss:
            query, table = model.relation_query(entities), model.relation_candidates()
            part = filtered_softmax_loss(query, table, relation, self._left_out(facts, None), smoothing)
            loss = loss + self._settings.relation_loss * part / len(facts)
        return loss + regulariser(model, relation, entities, self._settings)

    def _left_out(self, facts: Facts, position: int | None) -> tuple[Tensor, Tensor]:
        """The other answers of each question: they are no negatives."""
        answers = self._known.lookup(facts.relation, facts.entities, position)
        rows, target = answers.rows, facts.relation if position is None else facts.entities[:, position]
        others = answers.values != target[rows]
        return self._tensor(rows[others]), self._tensor(answers.values[others])

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.tensor(array, device=self._device)


class KvsAll:
    """Each question once, with all its answers."""

    def __init__(
        self, blocks: Mapping[int, Facts], known: KnownAnswers, settings: TrainSettings, device: torch.device
    ) -> None:
        self._known, self._settings, self._device = known, settings, device
        self._questions = [
            (_distinct_questions(facts, position), position)
            for facts in blocks.values()
            for position in range(facts.arity)
        ]
        self.sizes = [len(facts) for facts, _ in self._questions]

    def loss(self, model: DotProductModel, batch: Batch) -> Tensor:
        """The mean loss of a batch of questions."""
        facts, position = self._questions[batch.block]
        facts = facts.take(batch.rows)
        relation, entities = (torch.tensor(part, device=self._device) for part in (facts.relation, facts.entities))
        scores = model.score_candidates(relation, entities, position)
        answers = self._known.lookup(facts.relation, facts.entities, position)
        labels = torch.zeros_like(scores)
        labels[torch.tensor(answers.rows), torch.tensor(answers.values)] = 1
        loss = multi_answer_loss(scores, labels, self._settings.kvsall_loss, self._settings.label_smoothing)
        return loss + regulariser(model, relation, entities, self._settings, position)


Regime = OneVsAll | KvsAll
REGIMES: dict[str, type[OneVsAll] | type[KvsAll]] = {"1vsall": OneVsAll, "kvsall": KvsAll}


def regulariser(
    model: DotProductModel, relation: Tensor, entities: Tensor, settings: TrainSettings, position: int | None = None
) -> Tensor:
    """N3: the cubes of the embeddings, summed over dimensions, averaged over facts; an open position takes no part."""
    if not settings.n3:
        return torch.zeros((), device=relation.device)
    factors = model.factors(relation, entities)
    cubes = [
        (factor.abs() ** 3).sum() for place, factor in enumerate(factors) if position is None or place != position + 1
    ]
    return settings.n3 * torch.stack(cubes).sum() / len(relation)


def _distinct_questions(facts: Facts, position: int) -> Facts:
    """One fact for each question."""
    others = [0, *(j + 1 for j in range(facts.arity) if j != position)]
    _, first = np.unique(facts.rows()[:, others], axis=0, return_index=True)
    return facts.take(first)

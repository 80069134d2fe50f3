"""A trained model with a memory."""

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor

from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights
from getd.models.base import Cells, ScoringModel
from getd.models.counts import expand_spans


class WithMemory(ScoringModel):
    """A trained model and a memory that adds to its scores; weights by position, "4-0".

    With ``leave_out`` it scores facts that the memory has counted, each as if it had not been.
    """

    def __init__(
        self,
        model: ScoringModel,
        memory: Memory,
        weights: Mapping[str, MemoryWeights],
        leave_out: bool = False,
    ) -> None:
        super().__init__(model.sizes)
        self.model = model
        self.memory = memory
        self.weights = dict(weights)
        self.reads_answers = leave_out

    def leaving_out(self) -> Self:
        """Return the same for facts that the memory has counted."""
        other = type(self)(self.model, self.memory, self.weights, leave_out=True)
        return other.train(self.training)

    @property
    def bare(self) -> ScoringModel:
        return self.model

    @property
    def memory_weights(self) -> int:
        """How many numbers were fitted: where the memory counts, a scale and two per source."""
        used = [weights for weights in self.weights.values() if weights.sources]
        return sum(1 + 2 * len(weights.sources) for weights in used)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        scores = self.model.score_candidates(relation, entities, position, candidates)
        scale, (rows, entity, added) = self.memory_cells(relation, entities, position)
        scores = scores * scale
        added = added.to(scores)
        if candidates is None:
            return scores.index_put((rows, entity), added, accumulate=True)

        if candidates.dim() == 1:
            # The same candidates for all questions: each may be there several times, or not at all.
            ordered, order = candidates.sort()
            first = torch.searchsorted(ordered, entity)
            last = torch.searchsorted(ordered, entity, right=True)
            columns, index = expand_spans(first, last - first)
            return scores.index_put((rows[index], order[columns]), added[index], accumulate=True)

        # Candidates of each question: a question and a candidate are one number, and looked up.
        known = rows * self.n_entities + entity
        if not len(known):
            return scores
        questions = torch.arange(len(relation), device=relation.device)
        cells = questions[:, None] * self.n_entities + candidates
        index = torch.searchsorted(known, cells).clamp(max=len(known) - 1)
        return scores + torch.where(known[index] == cells, added[index], 0)

    def memory_cells(
        self, relation: Tensor, entities: Tensor, position: int
    ) -> tuple[float, Cells]:
        arity = entities.shape[1]
        weights = self.weights.get(f"{arity}-{position}", MemoryWeights())
        if not weights.sources:
            return weights.scale, Cells(relation[:0], relation[:0], relation[:0])
        rows, entity, features = self.memory.features(
            relation, entities, position, leave_out=self.reads_answers
        )
        theta = weights.as_tensor(self.memory.sources(arity, position))
        return weights.scale, Cells(rows, entity, features @ theta.to(features))

    def score_relations(self, entities: Tensor) -> Tensor:
        return self.model.score_relations(entities)

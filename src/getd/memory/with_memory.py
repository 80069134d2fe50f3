"""A trained model with a memory."""

from collections.abc import Mapping

import torch
from torch import Tensor

from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights
from getd.models.aliases import Positions
from getd.models.base import MemoryTerms, ScoringModel
from getd.models.counts import expand_spans


class WithMemory(ScoringModel):
    """A trained model and a memory that adds to its scores; weights by position, "4-0"."""

    def __init__(
        self, model: ScoringModel, memory: Memory, weights: Mapping[str, MemoryWeights]
    ) -> None:
        super().__init__(model.sizes)
        self.model = model
        self.memory = memory
        self.weights = dict(weights)
        self._tensors: dict[tuple[int, tuple[int, ...]], tuple[Tensor, Tensor]] = {}

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
        terms = self.memory_terms(relation, entities, [position])
        if candidates is None:
            return terms.apply(scores)
        scale, rows, entity, added = terms
        scores = scores * scale.to(scores)
        added = added.to(scores)

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

    def memory_terms(self, relation: Tensor, entities: Tensor, positions: Positions) -> MemoryTerms:
        scale, theta = self._weights_at(entities.shape[1], tuple(positions))
        rows, candidates, features = self.memory.features(relation, entities, positions)
        values = (features * theta.to(features)[rows % len(positions)]).sum(dim=1)
        return MemoryTerms(scale, rows, candidates, values)

    def _weights_at(self, arity: int, positions: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return the scales ``(p,)`` and the weights of features ``(p, 2 s)`` at positions."""
        if (arity, positions) not in self._tensors:
            weights = [self.weights.get(f"{arity}-{p}", MemoryWeights()) for p in positions]
            scale = torch.tensor([each.scale for each in weights])
            sources = [self.memory.sources(arity, position) for position in positions]
            rows = [each.as_tensor(names) for each, names in zip(weights, sources, strict=True)]
            self._tensors[arity, positions] = (scale, torch.stack(rows))
        return self._tensors[arity, positions]

    def score_relations(self, entities: Tensor) -> Tensor:
        return self.model.score_relations(entities)

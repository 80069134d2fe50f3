r"""TransE: a relation is a translation from the first entity to the second.

.. math::
    \phi(r, e_1, e_2) = -\lVert e_1 + r - e_2 \rVert_p
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn.functional import normalize

from getd.models.base import ModelSizes, ScoringModel, check_arity
from getd.models.layers import embedding
from getd.models.settings import ModelSettings

HELD = 2**24  # numbers held at a time, where questions have candidates of their own


class TransESettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "transe"``."""

    entity_dim: PositiveInt = 50
    p: Literal[1, 2] = 1  # of the norm: 1 sums differences, 2 is the Euclidean length
    unit_entities: bool = False  # entities are scaled to length 1 when they are looked up


class TransE(ScoringModel):
    """Minus the distance from the first entity, moved by the relation, to the second."""

    binary_only = True
    parameters_formula = "|E|d + |R|d"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: TransESettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d, scale = settings.entity_dim, settings.initial_scale
        self.p, self.unit_entities = settings.p, settings.unit_entities
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, d, scale, generator)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Tensor | None = None
    ) -> Tensor:
        check_arity(self.arities, entities)
        moved, given = self.relation(relation), self._vectors(entities[:, 1 - position])
        goal = (
            given + moved if position else given - moved
        )  # where the missing entity should be, (b, d)
        if candidates is None or candidates.dim() == 1:
            return -_distances(goal, self._vectors(candidates), self.p)
        at_once = max(1, HELD // goal.numel())
        return -torch.cat(
            [self._own(goal, part) for part in torch.split(candidates, at_once, 1)], dim=1
        )

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        if shared is not None:
            return super().score_positions(relation, entities, own, shared)
        check_arity(self.arities, entities)
        looked_up = self._vectors(
            torch.cat([entities.unsqueeze(2), own], dim=2)
        )  # at once: one gradient of the table
        given, candidates = torch.split(
            looked_up, [1, own.shape[2]], dim=2
        )  # (b, 2, 1, d), (b, 2, k, d)
        moved = self.relation(relation).unsqueeze(1)
        goals = torch.stack([given[:, 1] - moved, given[:, 0] + moved], dim=1)
        return -lengths(candidates - goals, self.p), None

    def score_relations(self, entities: Tensor) -> Tensor:
        check_arity(self.arities, entities)
        first, second = self._vectors(entities).unbind(1)
        return -_distances(second - first, self.relation.weight, self.p)

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        return [self.relation(relation), *self.entity(entities).unbind(1)]

    def _own(self, goal: Tensor, candidates: Tensor) -> Tensor:
        """Distances ``(b, m)`` of candidates that are each question's own."""
        return lengths(self._vectors(candidates) - goal.unsqueeze(1), self.p)

    def _vectors(self, ids: Tensor | None) -> Tensor:
        """The vectors of some entities, or of all."""
        found = self.entity.weight if ids is None else self.entity(ids)
        return normalize(found, dim=-1) if self.unit_entities else found


def lengths(vectors: Tensor, p: int) -> Tensor:
    """Of the vectors in the last axis; a sum is several times faster than torch's norm for ``p = 1``."""
    if p == 1:
        return vectors.abs().sum(dim=-1)
    found: Tensor = torch.linalg.vector_norm(vectors, p, dim=-1)
    return found


def _distances(goals: Tensor, vectors: Tensor, p: int) -> Tensor:
    """Every goal ``(b, d)`` to every vector ``(m, d)``; for ``p = 2`` by a matrix product, its gradient at 0 is 0."""
    return torch.cdist(goals, vectors, float(p), compute_mode="use_mm_for_euclid_dist")

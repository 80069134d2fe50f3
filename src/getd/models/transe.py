r"""TransE: a relation is a translation from the first entity to the second.

.. math::
    \phi(r, e_1, e_2) = -\lVert e_1 + r - e_2 \rVert_p
"""

from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn.functional import normalize

from getd.models.aliases import Candidates, OwnAndShared, RandomSource, Shared
from getd.models.base import ModelSizes, ScoringModel
from getd.models.layers import embedding
from getd.models.parts import score_in_parts
from getd.models.settings import ModelSettings

BUDGET = 2**24  # numbers held at a time, where questions have candidates of their own


class TransESettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "transe"``."""

    entity_dim: PositiveInt = 50
    p: Literal[1, 2] = 1  # of the norm: 1 sums differences, 2 is the Euclidean length
    unit_entities: bool = False  # entities are scaled to length 1 when they are looked up


class TransE(ScoringModel):
    """Minus the distance between the first entity, translated by the relation, and the second."""

    binary_only = True
    parameters_formula = "|E|d + |R|d"

    def __init__(
        self, sizes: ModelSizes, settings: TransESettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        scale = settings.initial_scale
        self.p = settings.p
        self.unit_entities = settings.unit_entities
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, d, scale, generator)

    def score_candidates(
        self, relation: Tensor, entities: Tensor, position: int, candidates: Candidates = None
    ) -> Tensor:
        self.check_arity(entities)
        moved = self.relation(relation)
        given = self.entity_vectors(entities[:, 1 - position])
        goal = given + moved if position else given - moved  # of the missing entity, (b, d)
        if candidates is None or candidates.dim() == 1:
            return -_distances(goal, self.entity_vectors(candidates), self.p)

        goals = goal.unsqueeze(1)
        return -score_in_parts(
            lambda part: lengths(self.entity_vectors(part) - goals, self.p),
            candidates,
            BUDGET // goal.numel(),
        )

    def score_positions(
        self, relation: Tensor, entities: Tensor, own: Tensor, shared: Shared = None
    ) -> OwnAndShared:
        if shared is not None:
            return super().score_positions(relation, entities, own, shared)
        self.check_arity(entities)

        # All entities are looked up together, so that the table gets one gradient.
        vectors = self.entity_vectors(torch.cat([entities.unsqueeze(2), own], dim=2))
        given, candidates = torch.split(vectors, [1, own.shape[2]], dim=2)  # (b, 2, k, d)
        moved = self.relation(relation).unsqueeze(1)
        first, second = given.unbind(1)
        goals = torch.stack([second - moved, first + moved], dim=1)
        return -lengths(candidates - goals, self.p), None

    def score_relations(self, entities: Tensor) -> Tensor:
        self.check_arity(entities)
        first, second = self.entity_vectors(entities).unbind(1)
        return -_distances(second - first, self.relation.weight, self.p)

    def entity_vectors(self, ids: Candidates) -> Tensor:
        vectors = super().entity_vectors(ids)
        return normalize(vectors, dim=-1) if self.unit_entities else vectors


def lengths(vectors: Tensor, p: int) -> Tensor:
    """Return the lengths of the vectors in the last axis."""
    if p == 1:  # a sum is several times faster than torch's norm
        return vectors.abs().sum(dim=-1)
    norms: Tensor = torch.linalg.vector_norm(vectors, p, dim=-1)
    return norms


def _distances(goals: Tensor, vectors: Tensor, p: int) -> Tensor:
    """Return the distances of every goal ``(b, d)`` to every vector ``(m, d)``.

    For ``p = 2`` they come from a matrix product; their gradient at 0 is 0.
    """
    return torch.cdist(goals, vectors, float(p), compute_mode="use_mm_for_euclid_dist")

r"""The query of GETD, with one ring for all arities, as a part of other models.

.. math::
    q_p[i] = \operatorname{trace}\bigl(
        M_0 \cdots M_{p} \; Z_{p+1}[:, i, :] \; M_{p+2} \cdots M_n \bigr), \qquad
    M_0 = \textstyle\sum_i r_i Z_0[:, i, :], \quad
    M_j = \sum_i e_{j-1,i} Z_j[:, i, :]

Facts of :math:`n` entities take the first :math:`n + 1` cores. A linear map narrows the vectors
before, and another widens the query after; in between it is normalised, so it has one length for
every arity. A ring over vectors of full width learns small data by heart. The query is short at
first, so a model begins without it.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from getd.algebra.ring import ring_environments, ring_shapes
from getd.models.aliases import RandomSource
from getd.models.getd import scaled_core
from getd.models.layers import drop_out

FIRST_SCALE = 0.1  # of the normalised query


class RingShape(NamedTuple):
    """The sizes of a ring for all arities."""

    largest_arity: int
    dim: int  # of the vectors that it multiplies
    ranks: int


class RingQuery(nn.Module):
    """Contracts a ring with the relation and all given entities."""

    def __init__(
        self,
        dim: int,
        ring: RingShape,
        dropout: float,
        query_dropout: float,
        generator: RandomSource = None,
    ) -> None:
        super().__init__()
        shapes = ring_shapes([ring.dim] * (ring.largest_arity + 1), ring.ranks)
        self.cores = nn.ParameterList([scaled_core(shape, generator) for shape in shapes])
        self.narrow = nn.Linear(dim, ring.dim, bias=False)
        self.widen = nn.Linear(ring.dim, dim, bias=False)

        self.relation_norm = nn.LayerNorm(ring.dim)
        self.entity_norm = nn.LayerNorm(ring.dim)
        self.query_norm = nn.LayerNorm(ring.dim)
        nn.init.constant_(self.query_norm.weight, FIRST_SCALE)
        self.dropout = dropout
        self.query_dropout = query_dropout

    def forward(self, relation: Tensor, given: Tensor, position: int) -> Tensor:
        """Make the query ``(b, d)`` of a position; ``given`` ``(b, k, d)`` are the others."""
        vectors: list[Tensor | None] = [self._relation(relation)]
        vectors += self._entities(given).unbind(1)
        vectors.insert(position + 1, None)
        (query,) = ring_environments(self._ring(vectors), vectors, [position + 1])
        return self._finished(query)

    def each(self, relation: Tensor, entities: Tensor) -> Tensor:
        """Make the queries of all positions of facts, ``(b, n, d)``."""
        vectors = [self._relation(relation), *self._entities(entities).unbind(1)]
        environments = ring_environments(self._ring(vectors), vectors, range(1, len(vectors)))
        return self._finished(torch.stack(environments, dim=1))

    def _ring(self, vectors: list[Tensor | None] | list[Tensor]) -> list[Tensor]:
        return list(self.cores)[: len(vectors)]

    def _relation(self, relation: Tensor) -> Tensor:
        vectors: Tensor = self.relation_norm(self.narrow(relation))
        return vectors

    def _entities(self, entities: Tensor) -> Tensor:
        return drop_out(self.entity_norm(self.narrow(entities)), self.dropout, self.training)

    def _finished(self, query: Tensor) -> Tensor:
        normalised = drop_out(self.query_norm(query), self.query_dropout, self.training)
        widened: Tensor = self.widen(normalised)
        return widened

r"""GETD: Tucker scoring whose core is a tensor ring.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n, \qquad
    \mathcal{W} \simeq \operatorname{TR}(Z_1, \dots, Z_k)

Liu, Yao and Li: Generalizing Tensor Decomposition for N-ary Relational Knowledge Bases, WWW 2020. The core is never
built.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.reshape import check_reshape, reshaped_environment, reshaped_environments
from getd.algebra.ring import expand_ranks
from getd.errors import ShapeError
from getd.models.base import DotProductModel, check_arity
from getd.models.inputs import Norms, embedding, norms_by_arity
from getd.models.settings import TensorModelSettings


class GETDSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "getd"``."""

    relation_dim: PositiveInt | None = None  # None: as entity_dim
    ring_shape: tuple[PositiveInt, ...] | None = None  # sizes of the ring's cores; None: one core per mode
    ring_ranks: PositiveInt | tuple[PositiveInt, ...] = 40  # of all bonds, or of each


class GETD(DotProductModel):
    """Tucker scoring with a tensor-ring core; one ring per arity, one entity table for all."""

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        arities: Sequence[int],
        settings: GETDSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_entities, self.n_relations, self.arities = n_entities, n_relations, tuple(arities)
        d_e, d_r = settings.entity_dim, settings.relation_dim or settings.entity_dim
        self.dims = {n: (d_r, *[d_e] * n) for n in self.arities}
        self.entity = embedding(n_entities, d_e, settings.initial_scale, generator)
        self.relation = embedding(n_relations, d_r, settings.initial_scale, generator)
        self.rings = nn.ModuleDict({str(n): self._ring(n, settings, generator) for n in self.arities})
        self.norms = norms_by_arity(self.arities, d_r, settings)

    def _ring(self, arity: int, settings: GETDSettings, generator: torch.Generator | None) -> nn.ParameterList:
        """Cores scaled so that the score of vectors with unit entries is about one, whatever ranks and arity."""
        if settings.ring_shape is not None and len(self.arities) > 1:
            raise ShapeError("ring_shape is for facts of one arity; leave it out for mixed arities")
        shape = settings.ring_shape or self.dims[arity]
        check_reshape(shape, self.dims[arity])
        ranks = expand_ranks(settings.ring_ranks, len(shape))
        sizes = zip(ranks, shape, (*ranks[1:], ranks[0]), strict=True)
        return nn.ParameterList([torch.randn(a, n, b, generator=generator) / (n * a) ** 0.5 for a, n, b in sizes])

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        n, norms = self._arity(entities)
        given = [j for j in range(n) if j != position]
        r = norms.relation(self.relation(relation))  # (b, d_r)
        e = norms.entity(self.entity(entities[:, given]))  # (b, n - 1, d_e)
        vectors: list[Tensor | None] = [r, *[None] * n]
        for place, j in enumerate(given):
            vectors[j + 1] = e[:, place]
        q = reshaped_environment(self._cores(n), self.dims[n], vectors, position + 1)
        query: Tensor = norms.query(q)
        return query

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        r = norms.relation(self.relation(relation))  # (b, d_r)
        e = norms.entity(self.entity(entities))  # (b, n, d_e)
        q = reshaped_environments(self._cores(n), self.dims[n], [r, *e.unbind(1)], range(1, n + 1))
        queries: Tensor = norms.query(torch.stack(q, dim=1))  # (b, n, d_e)
        return queries

    def candidates(self, position: int) -> Tensor:
        return self.entity.weight

    def relation_query(self, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        e = norms.entity(self.entity(entities))
        query: Tensor = norms.relation_query(
            reshaped_environment(self._cores(n), self.dims[n], [None, *e.unbind(1)], 0)
        )
        return query

    def relation_candidates(self) -> Tensor:
        return self.relation.weight

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        return [self.relation(relation), *self.entity(entities).unbind(1)]

    def _cores(self, arity: int) -> list[Tensor]:
        ring = self.rings[str(arity)]
        assert isinstance(ring, nn.ParameterList)
        return list(ring)

    def _arity(self, entities: Tensor) -> tuple[int, Norms]:
        n = check_arity(self.arities, entities)
        norms = self.norms[str(n)]
        assert isinstance(norms, Norms)
        return n, norms

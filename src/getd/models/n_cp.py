r"""n-CP: canonical polyadic scoring, one entity table per position.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \, e^{(1)}_i \cdots e^{(n)}_i
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from getd.algebra.cp import cp_environments
from getd.models.base import DotProductModel, ModelSizes, check_arity
from getd.models.layers import Norms, embedding, norms_by_arity
from getd.models.settings import TensorModelSettings


class NCPSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "n-cp"``."""

    norms_by_position: bool = True  # as each position has a table of its own


class NCP(DotProductModel):
    """The sum of products of embeddings; facts of all arities share the tables of their positions."""

    parameters_formula = "n|E|d + |R|d"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: NCPSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d, scale = settings.entity_dim, settings.initial_scale
        tables = [
            embedding(sizes.n_entities, d, scale, generator, sparse=True)
            for _ in range(max(self.arities))
        ]
        self.entity = nn.ModuleList(tables)
        self.relation = embedding(sizes.n_relations, d, scale, generator)
        self.norms = norms_by_arity(self.arities, d, settings)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        n, norms = self._arity(entities)
        given = [j for j in range(n) if j != position]
        q = norms.relation(self.relation(relation))  # (b, d)
        if given:
            q = q * norms.entity(self._vectors(entities, given), given).prod(dim=1)
        query: Tensor = norms.query(q.unsqueeze(1), [position]).squeeze(1)
        return query

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        r = norms.relation(self.relation(relation))  # (b, d)
        e = norms.entity(self._vectors(entities, range(n)), range(n))  # (b, n, d)
        q = cp_environments([r, *e.unbind(1)], range(1, n + 1))
        queries: Tensor = norms.query(torch.stack(q, dim=1), range(n))
        return queries

    def candidates(self, position: int) -> Tensor:
        table: Tensor = self.entity[position].weight  # type: ignore[assignment]
        return table

    def relation_query(self, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        e = norms.entity(self._vectors(entities, range(n)), range(n))
        query: Tensor = norms.relation_query(e.prod(dim=1))
        return query

    def relation_candidates(self) -> Tensor:
        return self.relation.weight

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        return [
            self.relation(relation),
            *self._vectors(entities, range(entities.shape[1])).unbind(1),
        ]

    def _vectors(self, entities: Tensor, positions: Sequence[int]) -> Tensor:
        return torch.stack([self.entity[j](entities[:, j]) for j in positions], dim=1)

    def _arity(self, entities: Tensor) -> tuple[int, Norms]:
        n = check_arity(self.arities, entities)
        norms = self.norms[str(n)]
        assert isinstance(norms, Norms)
        return n, norms

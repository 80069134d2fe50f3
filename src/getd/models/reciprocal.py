r"""Reciprocal relations: each position has relations of its own, and the open position comes first.

.. math::
    \phi_p(r, e_1, \dots, e_n) = \phi(r_p, e_p, e_{p+1}, \dots, e_n, e_1, \dots, e_{p-1})

For facts of two entities that is the usual trick: :math:`(h, r, ?)` is asked as
:math:`(?, r^{-1}, h)`.
"""

import torch
from torch import Tensor

from getd.models.aliases import Factors
from getd.models.base import DotProductModel, ModelSizes


class Reciprocal(DotProductModel):
    """A model with a relation for each position; the relation slot is that of the first.

    Its relation tables have ``n_relations`` rows for each position, the first position first.
    """

    def __init__(self, sizes: ModelSizes, inner: DotProductModel) -> None:
        super().__init__(sizes)
        self.inner = inner
        self.relation_is_dot_product = inner.relation_is_dot_product

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        return self.inner.query(*self._turned(relation, entities, position), 0)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        b, n = entities.shape
        return self.inner.query(*self._all_turned(relation, entities), 0).view(b, n, -1)

    def candidates(self, position: int) -> Tensor:
        return self.inner.candidates(0)

    def relation_query(self, entities: Tensor) -> Tensor:
        return self.inner.relation_query(entities)

    def relation_candidates(self) -> Tensor:
        return self.inner.relation_candidates()[: self.n_relations]

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        """Return those of all questions of the facts, ``(b n, d)``."""
        return self.inner.factors(*self._all_turned(relation, entities))

    def given_factors(self, relation: Tensor, entities: Tensor, position: int) -> Factors:
        return self.inner.given_factors(*self._turned(relation, entities, position), 0)

    def _turned(self, relation: Tensor, entities: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """Turn facts so that a position comes first: its own relations, ``(b,)`` and ``(b, n)``."""
        return relation + position * self.n_relations, entities.roll(-position, dims=1)

    def _all_turned(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        """Turn each fact once for every position, ``(b n,)`` and ``(b n, n)``."""
        positions = range(entities.shape[1])
        turned = [self._turned(relation, entities, position) for position in positions]
        relations, facts = zip(*turned, strict=True)
        return torch.stack(relations, dim=1).flatten(), torch.stack(facts, dim=1).flatten(0, 1)

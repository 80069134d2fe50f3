r"""n-TuckER: Tucker scoring with a dense core, TuckER for any arity.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n

The core holds :math:`d_r d_e^n` numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.tucker import tucker_environment, tucker_environments
from getd.errors import ShapeError
from getd.models.base import DotProductModel, check_arity
from getd.models.inputs import Norms, embedding, norms_by_arity
from getd.models.settings import TensorModelSettings

MAX_CORE = 2**28  # numbers; a larger core is a mistake


class NTuckERSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "n-tucker"``."""

    relation_dim: PositiveInt | None = None  # None: as entity_dim


class NTuckER(DotProductModel):
    """Tucker scoring with one dense core per arity, one entity table for all."""

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        arities: Sequence[int],
        settings: NTuckERSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_entities, self.n_relations, self.arities = n_entities, n_relations, tuple(arities)
        d_e, d_r = settings.entity_dim, settings.relation_dim or settings.entity_dim
        for n in self.arities:
            if d_r * d_e**n > MAX_CORE:
                raise ShapeError(
                    f"the core of {d_r}·{d_e}^{n} = {d_r * d_e**n:,} numbers is too large; lower entity_dim"
                )
        self.entity = embedding(n_entities, d_e, settings.initial_scale, generator)
        self.relation = embedding(n_relations, d_r, settings.initial_scale, generator)
        cores = {
            n: torch.randn(d_r, *[d_e] * n, generator=generator) / (d_r * d_e ** (n - 1)) ** 0.5 for n in self.arities
        }
        self.cores = nn.ParameterDict({str(n): nn.Parameter(core) for n, core in cores.items()})
        self.norms = norms_by_arity(self.arities, d_r, settings)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        n, norms = self._arity(entities)
        given = [j for j in range(n) if j != position]
        e = norms.entity(self.entity(entities[:, given]))  # (b, n - 1, d_e)
        vectors: list[Tensor | None] = [norms.relation(self.relation(relation)), *[None] * n]
        for place, j in enumerate(given):
            vectors[j + 1] = e[:, place]
        query: Tensor = norms.query(tucker_environment(self.cores[str(n)], vectors, position + 1))
        return query

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        r = norms.relation(self.relation(relation))  # (b, d_r)
        e = norms.entity(self.entity(entities))  # (b, n, d_e)
        q = tucker_environments(self.cores[str(n)], [r, *e.unbind(1)], range(1, n + 1))
        queries: Tensor = norms.query(torch.stack(q, dim=1))
        return queries

    def candidates(self, position: int) -> Tensor:
        return self.entity.weight

    def relation_query(self, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        e = norms.entity(self.entity(entities))
        query: Tensor = norms.relation_query(tucker_environment(self.cores[str(n)], [None, *e.unbind(1)], 0))
        return query

    def relation_candidates(self) -> Tensor:
        return self.relation.weight

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        return [self.relation(relation), *self.entity(entities).unbind(1)]

    def _arity(self, entities: Tensor) -> tuple[int, Norms]:
        n = check_arity(self.arities, entities)
        norms = self.norms[str(n)]
        assert isinstance(norms, Norms)
        return n, norms

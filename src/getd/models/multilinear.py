r"""Tucker scoring: a core tensor contracted with the relation and the entities.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n

What a model adds is how it holds the core, or which core it takes for granted. The query of a position is the core
contracted with everything else, its *environment*.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor

from getd.models.base import DotProductModel, ModelSizes, check_arity
from getd.models.layers import Norms, dropped, embedding, norms_by_arity
from getd.models.settings import Dropout, TensorModelSettings


class MultilinearSettings(TensorModelSettings):
    """Settings of ``[model]`` for models with a core."""

    relation_dim: PositiveInt | None = None  # None: as entity_dim
    core_dropout: Dropout = 0.0  # on the numbers of the core, or of the ring's cores


class MultilinearModel(DotProductModel):
    """One entity table and one relation table for all arities; a core for each arity comes with the model."""

    def __init__(
        self,
        sizes: ModelSizes,
        settings: TensorModelSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d_e, d_r = (
            settings.entity_dim,
            getattr(settings, "relation_dim", None) or settings.entity_dim,
        )
        self.dims = {n: (d_r, *[d_e] * n) for n in self.arities}  # modes of the core
        self.entity = embedding(
            sizes.n_entities, d_e, settings.initial_scale, generator, sparse=True
        )
        self.relation = embedding(sizes.n_relations, d_r, settings.initial_scale, generator)
        self.norms = norms_by_arity(self.arities, d_r, settings)
        self._core_dropout: float = getattr(settings, "core_dropout", 0.0)

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        """The core of an arity contracted with all vectors but one, for each of these modes; mode 0 is the relation.

        Where one mode alone is chosen, its vector is ``None``. ``relation`` are the ids, where they are given:
        facts of one relation have one vector there, unless it was dropped out.
        """
        raise NotImplementedError

    def _dropped(self, core: Tensor) -> Tensor:
        """A core as training sees it."""
        return dropped(core, self._core_dropout) if self.training and self._core_dropout else core

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        n, norms = self._arity(entities)
        given = [j for j in range(n) if j != position]
        e = norms.entity(self.entity(entities[:, given]), given)  # (b, n - 1, d_e)
        vectors: list[Tensor | None] = [norms.relation(self.relation(relation)), *[None] * n]
        for place, j in enumerate(given):
            vectors[j + 1] = e[:, place]
        q = torch.stack(
            self.environments(n, relation, vectors, [position + 1]), dim=1
        )  # (b, 1, d_e)
        query: Tensor = norms.query(q, [position]).squeeze(1)
        return query

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        r = norms.relation(self.relation(relation))  # (b, d_r)
        e = norms.entity(self.entity(entities), range(n))  # (b, n, d_e)
        q = torch.stack(
            self.environments(n, relation, [r, *e.unbind(1)], range(1, n + 1)), dim=1
        )  # (b, n, d_e)
        queries: Tensor = norms.query(q, range(n))
        return queries

    def all_queries(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        n, norms = self._arity(entities)
        r, e = (
            norms.relation(self.relation(relation)),
            norms.entity(self.entity(entities), range(n)),
        )
        first, *others = self.environments(n, relation, [r, *e.unbind(1)], range(n + 1))
        return norms.query(torch.stack(others, dim=1), range(n)), norms.relation_query(first)

    def candidates(self, position: int) -> Tensor:
        return self.entity.weight

    def relation_query(self, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        e = norms.entity(self.entity(entities), range(n))
        query: Tensor = norms.relation_query(
            self.environments(n, None, [None, *e.unbind(1)], [0])[0]
        )
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

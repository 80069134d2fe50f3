r"""Multilinear scoring: a core tensor contracted with the relation and the entities.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n

A model adds how it holds the core, or which core it takes for granted. The query of a position is
the core contracted with everything else, its *environment*.
"""

import torch
from pydantic import PositiveInt
from torch import Tensor

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.models.aliases import RandomSource, RelationIds
from getd.models.base import DotProductModel, ModelSizes, other_positions
from getd.models.layers import Norms, NormsByArity, embedding
from getd.models.settings import Dropout, TensorModelSettings


class CoreSettings(TensorModelSettings):
    """Settings of ``[model]`` for models that learn a core."""

    relation_dim: PositiveInt | None = None  # None: as entity_dim
    core_dropout: Dropout = 0.0  # on the numbers of the core, or of the ring's cores


class MultilinearModel(DotProductModel):
    """One entity table and one relation table for all arities, and a core for each arity."""

    def __init__(
        self,
        sizes: ModelSizes,
        settings: TensorModelSettings,
        generator: RandomSource = None,
        *,
        entity_dim: int | None = None,
        relation_dim: int | None = None,
    ) -> None:
        super().__init__(sizes)
        scale = settings.initial_scale
        entity_dim = entity_dim or settings.entity_dim
        relation_dim = relation_dim or entity_dim

        # The sizes of the modes of the core, by arity.
        self.dims = {n: (relation_dim, *[entity_dim] * n) for n in self.arities}
        self.entity = embedding(sizes.n_entities, entity_dim, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, relation_dim, scale, generator)
        self.norms = NormsByArity(self.arities, entity_dim, relation_dim, settings)

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        """Contract the core with all vectors but one, for each of these modes; 0 is the relation.

        The vector of a single mode is ``None``. ``relation`` are the ids, where they are given:
        facts of one relation have one vector there, unless it was dropped out.
        """
        raise NotImplementedError

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        given = other_positions(entities, position)
        e = norms.entity(self.entity(entities[:, given]), given)  # (b, n - 1, d_e)
        r = norms.relation(self.relation(relation))  # (b, d_r)

        mode = position + 1
        vectors: list[Tensor | None] = [r, *e.unbind(1)]
        vectors.insert(mode, None)
        environments = self.environments(relation, vectors, [mode])
        q = torch.stack(environments, dim=1)  # (b, 1, d_e)
        return norms.query(q, [position]).squeeze(1)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        norms, vectors = self._normalised(relation, entities)
        environments = self.environments(relation, vectors, range(1, len(vectors)))
        return norms.query(torch.stack(environments, dim=1))

    def all_queries(self, relation: Tensor, entities: Tensor) -> tuple[Tensor, Tensor]:
        norms, vectors = self._normalised(relation, entities)
        first, *others = self.environments(relation, vectors, range(len(vectors)))
        return norms.query(torch.stack(others, dim=1)), norms.relation_query(first)

    def _normalised(self, relation: Tensor, entities: Tensor) -> tuple[Norms, list[Tensor]]:
        """Return the norms of facts, and their vectors, normalised: one for each mode."""
        norms = self.norms.of(self.check_arity(entities))
        r = norms.relation(self.relation(relation))  # (b, d_r)
        e = norms.entity(self.entity(entities))  # (b, n, d_e)
        return norms, [r, *e.unbind(1)]

    def relation_query(self, entities: Tensor) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        e = norms.entity(self.entity(entities))
        (environment,) = self.environments(None, [None, *e.unbind(1)], [0])
        return norms.relation_query(environment)

    def relation_candidates(self) -> Tensor:
        return self.relation.weight

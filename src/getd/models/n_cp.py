r"""n-CP: canonical polyadic scoring, one entity table per position.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \, e^{(1)}_i \cdots e^{(n)}_i
"""

import torch
from torch import Tensor
from torch.nn import Embedding, ModuleList

from getd.algebra.cp import cp_environments
from getd.models.aliases import Factors, Positions, RandomSource
from getd.models.base import DotProductModel, ModelSizes, other_positions
from getd.models.layers import NormsByArity, embedding
from getd.models.settings import TensorModelSettings


class NCPSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "n-cp"``."""

    norms_by_position: bool = True  # each position has a table of its own


class NCP(DotProductModel):
    """The sum of products of embeddings; all arities share the tables of their positions."""

    parameters_formula = "n|E|d + |R|d"
    entity: ModuleList  # type: ignore[assignment]

    def __init__(
        self, sizes: ModelSizes, settings: NCPSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        scale = settings.initial_scale
        self.entity = ModuleList()
        for _ in range(max(self.arities)):
            self.entity.append(embedding(sizes.n_entities, d, scale, generator, sparse=True))
        self.relation = embedding(sizes.n_relations, d, scale, generator)
        self.norms = NormsByArity(self.arities, d, d, settings)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        given = other_positions(entities, position)
        q = norms.relation(self.relation(relation))  # (b, d)
        if given:
            e = norms.entity(self._vectors(entities, given), given)
            q = q * e.prod(dim=1)
        return norms.query(q.unsqueeze(1), [position]).squeeze(1)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        r = norms.relation(self.relation(relation))  # (b, d)
        e = norms.entity(self._vectors(entities))  # (b, n, d)
        modes = range(1, 1 + entities.shape[1])
        environments = cp_environments([r, *e.unbind(1)], modes)
        return norms.query(torch.stack(environments, dim=1))

    def candidates(self, position: int) -> Tensor:
        table = self.entity[position]
        assert isinstance(table, Embedding)
        return table.weight

    def relation_query(self, entities: Tensor) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        e = norms.entity(self._vectors(entities))
        return norms.relation_query(e.prod(dim=1))

    def relation_candidates(self) -> Tensor:
        return self.relation.weight

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        return [self.relation(relation), *self._vectors(entities).unbind(1)]

    def _vectors(self, entities: Tensor, positions: Positions | None = None) -> Tensor:
        """Return the vectors of entities at positions, by default all: ``(b, positions, d)``."""
        positions = range(entities.shape[1]) if positions is None else positions
        return torch.stack([self.entity[j](entities[:, j]) for j in positions], dim=1)

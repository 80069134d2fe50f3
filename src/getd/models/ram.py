r"""RAM: a relation is its roles; each role has a vector, and a pattern of the parts it looks at.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_{i=1}^n \bigl\langle u_i, \; P_i[1,:] \, E_1, \; \dots, \;
    P_i[n,:] \, E_n \bigr\rangle, \qquad
    u_i = \sum_l \alpha_{il} b_l, \quad P_i = \sum_l \alpha_{il} B_l

:math:`E_j` is the entity's vector as m rows of d numbers, :math:`\alpha_i` the softmax of the
weights of the relation's role i. The basis vectors :math:`b_l` and patterns :math:`B_l` (n × m, one
set for each arity) serve all roles of all relations. The score is linear in each entity, but not in
what a relation learns.
"""

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.aliases import Vectors
from getd.algebra.cp import cp_environments
from getd.models.aliases import Factors, Positions, RandomSource
from getd.models.base import DotProductModel, ModelSizes, other_positions
from getd.models.layers import NormsByArity, embedding
from getd.models.settings import TensorModelSettings


class RAMSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "ram"``."""

    entity_dim: PositiveInt = 25  # an entity has ``multiplicity`` times as many numbers
    multiplicity: PositiveInt = 2
    latent: PositiveInt = 10  # number of basis vectors and patterns


class RAM(DotProductModel):
    """Each role mixes a few basis vectors, and a pattern weights the parts of each entity."""

    relation_is_dot_product = False
    parameters_formula = "|E|m d + |R|n L + L d + L n m"

    def __init__(
        self, sizes: ModelSizes, settings: RAMSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        m = settings.multiplicity
        n_basis = settings.latent
        scale = settings.initial_scale
        self.multiplicity = m
        self.entity = embedding(sizes.n_entities, m * d, scale, generator, sparse=True)

        width = max(self.arities) * n_basis
        self.relation = embedding(sizes.n_relations, width, 1.0, generator)  # roles start apart
        self.basis = nn.Parameter(scale * torch.randn(n_basis, d, generator=generator))
        self.patterns = nn.ParameterDict()
        for n in self.arities:
            pattern = torch.randn(n_basis, n * m, generator=generator)
            self.patterns[str(n)] = nn.Parameter(pattern)
        self.norms = NormsByArity(self.arities, m * d, d, settings, has_relation_query=False)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        given = other_positions(entities, position)
        e = norms.entity(self.entity(entities[:, given]), given)  # (b, n - 1, m d)
        vectors: list[Tensor | None] = [*e.unbind(1)]
        vectors.insert(position, None)
        q = self._queries(relation, vectors, [position])
        return norms.query(q, [position]).squeeze(1)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        norms = self.norms.of(self.check_arity(entities))
        e = norms.entity(self.entity(entities))  # (b, n, m d)
        return norms.query(self._queries(relation, e.unbind(1), range(entities.shape[1])))

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        """Return the role vectors of the relation, one after the other, and the entities'."""
        roles = self._weights(relation, entities.shape[1]) @ self.basis
        return [roles.flatten(1), *self.entity(entities).unbind(1)]

    def _queries(self, relation: Tensor, vectors: Vectors, positions: Positions) -> Tensor:
        """Return the queries of these positions before their norm, ``(b, positions, m d)``."""
        b = len(relation)
        n = len(vectors)
        m = self.multiplicity
        weights = self._weights(relation, n)

        # The basis patterns (L, n m) are positive, and on average 1 in sum per position.
        basis_patterns = n * torch.softmax(self.patterns[str(n)], dim=1)
        mixed = weights @ basis_patterns
        patterns = mixed.view(b, n, n, m).unbind(2)  # of each position, (b, role, m)
        roles = self.norms.of(n).relation(weights @ self.basis)  # (b, role, d)

        seen = [roles.flatten(0, 1), *[None] * n]  # (b role, d)
        for j, vector in enumerate(vectors):
            if vector is not None:
                seen[j + 1] = (patterns[j] @ vector.reshape(b, m, -1)).flatten(0, 1)

        queries = []
        environments = cp_environments(seen, [position + 1 for position in positions])
        for position, q in zip(positions, environments, strict=True):
            queries.append((patterns[position].mT @ q.view(b, n, -1)).flatten(1))
        return torch.stack(queries, dim=1)

    def _weights(self, relation: Tensor, arity: int) -> Tensor:
        """Return what each role is mixed from, ``(b, n, L)``."""
        weights = self.relation(relation).view(len(relation), -1, len(self.basis))
        return torch.softmax(weights[:, :arity], dim=2)

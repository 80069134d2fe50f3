r"""RAM: a relation is its roles; each role has a vector, and a pattern of which parts of which entities it looks at.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_{i=1}^n \bigl\langle u_i, \; P_i[1,:] \, E_1, \; \dots, \; P_i[n,:] \, E_n
    \bigr\rangle, \qquad u_i = \sum_l \alpha_{il} b_l, \quad P_i = \sum_l \alpha_{il} B_l

:math:`E_j` is the entity's vector as m rows of d numbers, :math:`\alpha_i` the softmax of the weights of the relation's
role i, and the basis vectors :math:`b_l` and patterns :math:`B_l` (n × m, one set for each arity) serve all roles of
all relations. The score is linear in each entity, but not in what a relation learns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.cp import cp_environments
from getd.models.base import DotProductModel, ModelSizes, check_arity
from getd.models.layers import Norms, embedding, norms_by_arity
from getd.models.settings import TensorModelSettings


class RAMSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "ram"``; an entity has ``multiplicity`` times ``entity_dim`` numbers."""

    multiplicity: PositiveInt = 2
    latent: PositiveInt = 10  # how many basis vectors and patterns roles are mixed from


class RAM(DotProductModel):
    """Roles mixed from a few basis vectors, each with a pattern of what it looks at in all entities of a fact."""

    relation_is_dot_product = False
    parameters_formula = "|E|m d + |R|n L + L d + L n m"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: RAMSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes)
        d, m, basis, scale = (
            settings.entity_dim,
            settings.multiplicity,
            settings.latent,
            settings.initial_scale,
        )
        self.multiplicity = m
        self.entity = embedding(sizes.n_entities, m * d, scale, generator, sparse=True)
        self.relation = embedding(
            sizes.n_relations, max(self.arities) * basis, 1.0, generator
        )  # roles start apart
        self.basis = nn.Parameter(scale * torch.randn(basis, d, generator=generator))
        patterns = {
            str(n): nn.Parameter(torch.randn(basis, n * m, generator=generator))
            for n in self.arities
        }
        self.patterns = nn.ParameterDict(patterns)
        self.norms = norms_by_arity(
            self.arities, d, settings.model_copy(update={"entity_dim": m * d})
        )
        for norms in self.norms.values():
            del norms.relation_query  # there is none

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        n, norms = self._arity(entities)
        given = [j for j in range(n) if j != position]
        e = norms.entity(self.entity(entities[:, given]), given)  # (b, n - 1, m d)
        vectors: list[Tensor | None] = [None] * n
        for place, j in enumerate(given):
            vectors[j] = e[:, place]
        q = torch.stack(self._queries(relation, vectors, [position], norms), dim=1)
        query: Tensor = norms.query(q, [position]).squeeze(1)
        return query

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n, norms = self._arity(entities)
        e = norms.entity(self.entity(entities), range(n))  # (b, n, m d)
        queries: Tensor = norms.query(
            torch.stack(self._queries(relation, e.unbind(1), range(n), norms), dim=1), range(n)
        )
        return queries

    def candidates(self, position: int) -> Tensor:
        return self.entity.weight

    def factors(self, relation: Tensor, entities: Tensor) -> list[Tensor]:
        """The role vectors of the relation, one after the other, and the embeddings of the entities."""
        roles = self._weights(relation, entities.shape[1]) @ self.basis
        return [roles.flatten(1), *self.entity(entities).unbind(1)]

    def _queries(
        self,
        relation: Tensor,
        vectors: Sequence[Tensor | None],
        positions: Sequence[int],
        norms: Norms,
    ) -> list[Tensor]:
        """The queries ``(b, m d)`` of these positions, as :func:`cp_environments` reads vectors."""
        b, n, m = len(relation), len(vectors), self.multiplicity
        weights = self._weights(relation, n)
        patterns = (
            (weights @ self.role_patterns(n)).view(b, n, n, m).transpose(1, 2)
        )  # (b, position, role, m)
        roles = norms.relation(weights @ self.basis)  # (b, role, d)
        seen = [
            None
            if vector is None
            else (patterns[:, j] @ vector.reshape(b, m, -1)).flatten(0, 1)  # (b role, d)
            for j, vector in enumerate(vectors)
        ]
        found = cp_environments(
            [roles.flatten(0, 1), *seen], [position + 1 for position in positions]
        )
        return [
            (patterns[:, p].mT @ q.view(b, n, -1)).flatten(1)
            for p, q in zip(positions, found, strict=True)
        ]

    def role_patterns(self, arity: int) -> Tensor:
        """The basis patterns ``(L, n m)``: positive numbers, 1 in sum for each position on average."""
        return arity * torch.softmax(self.patterns[str(arity)], dim=1)

    def _weights(self, relation: Tensor, arity: int) -> Tensor:
        """What each role is mixed from, ``(b, n, L)``."""
        return torch.softmax(
            self.relation(relation).view(len(relation), -1, len(self.basis))[:, :arity], dim=2
        )

    def _arity(self, entities: Tensor) -> tuple[int, Norms]:
        n = check_arity(self.arities, entities)
        norms = self.norms[str(n)]
        assert isinstance(norms, Norms)
        return n, norms

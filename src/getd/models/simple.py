r"""SimplE for any arity (HSimplE): DistMult in which each position reads the entity's vector from another point on.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \prod_{j=1}^n S_j(e_j)[i], \qquad
    S_j(e)[i] = e[(i + s_j) \bmod d], \quad s_j = \lfloor (j - 1) d / n \rfloor

With two entities and an even dimension this is SimplE: an entity has its head vector in the first half and its tail
vector in the second, a relation itself and its inverse. SimplE's own score is the half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from getd.algebra.cp import cp_environments
from getd.models.multilinear import MultilinearModel
from getd.models.norms import NormKind
from getd.models.settings import TensorModelSettings


class SimplESettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "simple"``; SimplE of ``k`` dimensions has ``entity_dim = 2 k``."""

    norm: NormKind = "none"  # as published


class SimplE(MultilinearModel):
    """The sum of products of embeddings, each position reading its entity's vector shifted by a part of its length."""

    parameters_formula = "|E|d + |R|d"

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        d = self.entity.embedding_dim
        shifts = [0, *(j * d // arity for j in range(arity))]  # by mode; the relation stays
        shifted = [
            None if v is None else v.roll(-s, dims=1) for v, s in zip(vectors, shifts, strict=True)
        ]
        found = cp_environments(shifted, modes)
        return [query.roll(shifts[mode], dims=1) for query, mode in zip(found, modes, strict=True)]

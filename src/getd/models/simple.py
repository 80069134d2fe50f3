r"""SimplE for any arity (HSimplE): DistMult in which each position reads a shifted entity vector.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \prod_{j=1}^n S_j(e_j)[i], \qquad
    S_j(e)[i] = e[(i + s_j) \bmod d], \quad s_j = \lfloor (j - 1) d / n \rfloor

With two entities and an even dimension this is SimplE: an entity has its head vector in the first
half and its tail vector in the second, a relation itself and its inverse. SimplE's own score is the
half of it.
"""

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.cp import cp_environments
from getd.choices import NormKind
from getd.models.aliases import RelationIds
from getd.models.multilinear import MultilinearModel
from getd.models.settings import TensorModelSettings


class SimplESettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "simple"``.

    SimplE of ``k`` dimensions has ``entity_dim = 2 k``.
    """

    norm: NormKind = "none"  # as published


class SimplE(MultilinearModel):
    """The sum of products of embeddings; each position shifts the vector of its entity."""

    parameters_formula = "|E|d + |R|d"

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        arity = len(vectors) - 1
        d = self.entity.embedding_dim
        shifts = [0, *(j * d // arity for j in range(arity))]  # by mode; the relation stays
        shifted = []
        for vector, shift in zip(vectors, shifts, strict=True):
            shifted.append(None if vector is None else vector.roll(-shift, dims=1))
        queries = cp_environments(shifted, modes)
        return [q.roll(shifts[mode], dims=1) for q, mode in zip(queries, modes, strict=True)]

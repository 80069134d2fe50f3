r"""DistMult, for any arity: n-CP with one entity table for all positions.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \, e_1[i] \cdots e_n[i]

The score does not depend on the order of the entities, so a relation with a direction cannot be
learnt.
"""

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.cp import cp_environments
from getd.choices import NormKind
from getd.models.aliases import RelationIds
from getd.models.multilinear import MultilinearModel
from getd.models.settings import TensorModelSettings


class DistMultSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "distmult"``."""

    norm: NormKind = "none"  # as published


class DistMult(MultilinearModel):
    """The sum of products of embeddings, one table for all positions; blind to their order."""

    parameters_formula = "|E|d + |R|d"

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        return cp_environments(vectors, modes)

r"""DistMult, for any arity: n-CP with one entity table for all positions.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \, e_1[i] \cdots e_n[i]

The score does not change when entities change places, so a relation that has a direction cannot be learnt.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from getd.algebra.cp import cp_environments
from getd.models.multilinear import MultilinearModel
from getd.models.norms import NormKind
from getd.models.settings import TensorModelSettings


class DistMultSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "distmult"``."""

    norm: NormKind = "none"  # as published


class DistMult(MultilinearModel):
    """The sum of products of embeddings, one entity table for all positions; blind to their order."""

    parameters_formula = "|E|d + |R|d"

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        return cp_environments(vectors, modes)

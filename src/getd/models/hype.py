r"""HypE: each position sees entities through convolution filters of its own; then the sum of products.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \prod_{j=1}^n (P_j e_j)[i], \qquad
    P_j e = W^\top \operatorname{vec}(e * \omega_j)

The filters :math:`\omega_j` of a position serve all relations and arities, the projection W all positions. Convolution
and projection are linear, so a position is a matrix :math:`P_j`, made once for a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.cp import cp_environments
from getd.errors import ShapeError
from getd.models.base import ModelSizes
from getd.models.multilinear import MultilinearModel
from getd.models.settings import TensorModelSettings


class HypESettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "hype"``."""

    filters: PositiveInt = 6  # of each position
    filter_width: PositiveInt = 5
    stride: PositiveInt = 2


class HypE(MultilinearModel):
    """The sum of products of embeddings, each position seeing its entity through convolution filters of its own."""

    parameters_formula = "|E|d + |R|d + n f w + f ((d - w) / s + 1) d"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: HypESettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes, settings, generator)
        d, width, filters = settings.entity_dim, settings.filter_width, settings.filters
        if width > d:
            raise ShapeError(f"filter_width = {width} is more than entity_dim = {d}")
        windows = torch.eye(d).unfold(
            0, width, settings.stride
        )  # (q, d, w): where each window reads
        self.register_buffer("windows", windows.contiguous(), persistent=False)
        places = len(windows)
        self.filters = nn.Parameter(
            torch.randn(max(sizes.arities), filters, width, generator=generator) / width**0.5
        )
        projection = (
            torch.randn(filters, places, d, generator=generator) / (filters * places) ** 0.5
        )
        self.projection = nn.Parameter(projection)

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        matrices = self.position_matrices(arity)
        given = [
            None if v is None else v @ matrix.T
            for v, matrix in zip(vectors[1:], matrices, strict=True)
        ]
        found = cp_environments([vectors[0], *given], modes)
        return [q @ matrices[mode - 1] if mode else q for q, mode in zip(found, modes, strict=True)]

    def position_matrices(self, arity: int) -> Tensor:
        """What a position does to an entity's vector, ``(n, d, d)``."""
        return torch.einsum("qdw,nfw,fqo->nod", self.windows, self.filters[:arity], self.projection)

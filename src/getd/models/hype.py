r"""HypE: each position sees entities through its own convolution filters; then the sum of products.

.. math::
    \phi(r, e_1, \dots, e_n) = \sum_i r_i \prod_{j=1}^n (P_j e_j)[i], \qquad
    P_j e = W^\top \operatorname{vec}(e * \omega_j)

The filters :math:`\omega_j` of a position serve all relations and arities, the projection W all
positions. Convolution and projection are linear, so a position is a matrix :math:`P_j`, made once
for a batch.
"""

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn import Parameter

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.cp import cp_environments
from getd.errors import ShapeError
from getd.models.aliases import RandomSource, RelationIds
from getd.models.base import ModelSizes
from getd.models.multilinear import MultilinearModel
from getd.models.settings import TensorModelSettings


class HypESettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "hype"``."""

    filters: PositiveInt = 6  # of each position
    filter_width: PositiveInt = 5
    stride: PositiveInt = 2


class HypE(MultilinearModel):
    """The sum of products of embeddings; each position has its own convolution filters."""

    windows: Tensor  # (q, d, w): where each window of a filter reads
    parameters_formula = "|E|d + |R|d + n f w + f ((d - w) / s + 1) d"

    def __init__(
        self, sizes: ModelSizes, settings: HypESettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes, settings, generator)
        d = settings.entity_dim
        width = settings.filter_width
        if width > d:
            raise ShapeError(f"filter_width = {width} is more than entity_dim = {d}")
        windows = torch.eye(d).unfold(0, width, settings.stride)
        self.register_buffer("windows", windows.contiguous(), persistent=False)

        n_filters = settings.filters
        n_windows = len(windows)
        filters = torch.randn(max(self.arities), n_filters, width, generator=generator)
        projection = torch.randn(n_filters, n_windows, d, generator=generator)
        self.filters = Parameter(filters / width**0.5)
        self.projection = Parameter(projection / (n_filters * n_windows) ** 0.5)

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        r, *entities = vectors
        matrices = self.position_matrices(len(entities))
        mapped = [r]
        for e, matrix in zip(entities, matrices, strict=True):
            mapped.append(None if e is None else e @ matrix.T)

        environments = []
        for q, mode in zip(cp_environments(mapped, modes), modes, strict=True):
            environments.append(q @ matrices[mode - 1] if mode else q)
        return environments

    def position_matrices(self, arity: int) -> Tensor:
        """Return what each position does to an entity's vector, ``(n, d, d)``."""
        return torch.einsum("qdw,nfw,fqo->nod", self.windows, self.filters[:arity], self.projection)

r"""GETD: Tucker scoring whose core is a tensor ring.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n, \qquad
    \mathcal{W} \simeq \operatorname{TR}(Z_1, \dots, Z_k)

Liu, Yao and Li: Generalizing Tensor Decomposition for N-ary Relational Knowledge Bases, WWW 2020. The core is never
built.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.reshape import check_reshape, reshaped_environments
from getd.algebra.ring import expand_ranks
from getd.errors import ShapeError
from getd.models.base import ModelSizes
from getd.models.multilinear import MultilinearModel, MultilinearSettings


class GETDSettings(MultilinearSettings):
    """Settings of ``[model]`` with ``name = "getd"``."""

    ring_shape: tuple[PositiveInt, ...] | None = (
        None  # sizes of the ring's cores; None: one core per mode
    )
    ring_ranks: PositiveInt | tuple[PositiveInt, ...] = 40  # of all bonds, or of each


class GETD(MultilinearModel):
    """Tucker scoring with a tensor-ring core; one ring per arity, one entity table for all."""

    parameters_formula = "|E|d + |R|d_r + the cores' R_i n_i R_i+1"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: GETDSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(sizes, settings, generator)
        self.rings = nn.ModuleDict(
            {str(n): self._ring(n, settings, generator) for n in self.arities}
        )

    def _ring(
        self, arity: int, settings: GETDSettings, generator: torch.Generator | None
    ) -> nn.ParameterList:
        """Cores scaled so that the score of vectors with unit entries is about one, whatever ranks and arity."""
        if settings.ring_shape is not None and len(self.arities) > 1:
            raise ShapeError("ring_shape is for facts of one arity; leave it out for mixed arities")
        shape = settings.ring_shape or self.dims[arity]
        check_reshape(shape, self.dims[arity])
        ranks = expand_ranks(settings.ring_ranks, len(shape))
        sizes = zip(ranks, shape, (*ranks[1:], ranks[0]), strict=True)
        return nn.ParameterList(
            [torch.randn(a, n, b, generator=generator) / (n * a) ** 0.5 for a, n, b in sizes]
        )

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        ring = self.rings[str(arity)]
        assert isinstance(ring, nn.ParameterList)
        cores = [self._dropped(core) for core in ring]
        return reshaped_environments(cores, self.dims[arity], vectors, modes)

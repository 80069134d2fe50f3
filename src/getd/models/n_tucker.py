r"""n-TuckER: Tucker scoring with a dense core, TuckER for any arity.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n

The core holds :math:`d_r d_e^n` numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn

from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from getd.models.tucker import TuckerModel, TuckerSettings

MAX_CORE = 2**28  # numbers; a larger core is a mistake


class NTuckERSettings(TuckerSettings):
    """Settings of ``[model]`` with ``name = "n-tucker"``."""


class NTuckER(TuckerModel):
    """Tucker scoring with one dense core per arity, one entity table for all."""

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        arities: Sequence[int],
        settings: NTuckERSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(n_entities, n_relations, arities, settings, generator)
        self.cores = nn.ParameterDict({str(n): self._core(n, generator) for n in self.arities})

    def _core(self, arity: int, generator: torch.Generator | None) -> nn.Parameter:
        """A core scaled so that the query of vectors with unit entries has entries of about one."""
        d_r, d_e = self.dims[arity][:2]
        size = prod(self.dims[arity])
        if size > MAX_CORE:
            raise ShapeError(f"the core of {d_r}·{d_e}^{arity} = {size:,} numbers is too large; lower entity_dim")
        return nn.Parameter(torch.randn(self.dims[arity], generator=generator) / (size / d_e) ** 0.5)

    def environments(self, arity: int, vectors: Sequence[Tensor | None], places: Sequence[int]) -> list[Tensor]:
        return tucker_environments(self.cores[str(arity)], vectors, places)

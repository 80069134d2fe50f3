r"""n-TuckER: Tucker scoring with a dense core, TuckER for any arity.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n

The core holds :math:`d_r d_e^n` numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from getd.models.base import ModelSizes
from getd.models.multilinear import MultilinearModel, MultilinearSettings

MAX_CORE = 2**28  # numbers; a larger core is a mistake
USUAL_DIM, USUAL_CORE = 25, 2**24


class NTuckERSettings(MultilinearSettings):
    """Settings of ``[model]`` with ``name = "n-tucker"``."""

    entity_dim: PositiveInt | None = None  # type: ignore[assignment]  # None: 25, less where the core would be too large


class NTuckER(MultilinearModel):
    """Tucker scoring with one dense core per arity, one entity table for all."""

    parameters_formula = "|E|d + |R|d_r + d_r d^n"

    def __init__(
        self,
        sizes: ModelSizes,
        settings: NTuckERSettings,
        generator: torch.Generator | None = None,
    ) -> None:
        chosen = settings.entity_dim or usual_dim(max(sizes.arities))
        super().__init__(
            sizes,
            settings.model_copy(update={"entity_dim": chosen}),
            generator,
        )
        self._relation_dropout = settings.relation_dropout
        self.cores = nn.ParameterDict({str(n): self._core(n, generator) for n in self.arities})

    def _core(self, arity: int, generator: torch.Generator | None) -> nn.Parameter:
        """A core scaled so that the query of vectors with unit entries has entries of about one."""
        d_r, d_e = self.dims[arity][:2]
        size = prod(self.dims[arity])
        if size > MAX_CORE:
            raise ShapeError(
                f"the core of {d_r}·{d_e}^{arity} = {size:,} numbers is too large; lower entity_dim"
            )
        return nn.Parameter(
            torch.randn(self.dims[arity], generator=generator) / (size / d_e) ** 0.5
        )

    def environments(
        self,
        arity: int,
        relation: Tensor | None,
        vectors: Sequence[Tensor | None],
        modes: Sequence[int],
    ) -> list[Tensor]:
        core, first = self._dropped(self.cores[str(arity)]), vectors[0]
        alone = torch.compiler.is_exporting()  # a graph cannot depend on which relations are alike
        if relation is None or first is None or alone or (self.training and self._relation_dropout):
            return tucker_environments(core, vectors, modes)
        distinct, groups = relation.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        row = torch.empty_like(distinct).scatter_(
            0, groups, torch.arange(len(groups), device=groups.device)
        )
        return tucker_environments(core, [first[row], *vectors[1:]], modes, groups)


def usual_dim(arity: int) -> int:
    """The entity dimension where none is chosen: 25, or the largest whose core has no more than 2^24 numbers.

    >>> [usual_dim(arity) for arity in (2, 3, 4, 5, 6)]
    [25, 25, 25, 16, 10]
    """
    return next(d for d in range(USUAL_DIM, 0, -1) if d ** (arity + 1) <= USUAL_CORE)

r"""n-TuckER: multilinear scoring with a dense core :math:`\mathcal{W}`, TuckER for any arity.

The core holds :math:`d_r d_e^n` numbers.
"""

from math import prod

import torch
from pydantic import PositiveInt
from torch.compiler import is_exporting
from torch.nn import Parameter, ParameterDict

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.tucker import tucker_environments
from getd.errors import ShapeError
from getd.models.aliases import RandomSource, RelationIds
from getd.models.base import ModelSizes
from getd.models.layers import drop_out
from getd.models.multilinear import CoreSettings, MultilinearModel

MAX_CORE = 2**28  # numbers; a larger core is a mistake
USUAL_DIM = 25  # of entities, where none is chosen
USUAL_CORE = 2**24  # numbers; where a core would be larger, that dimension is smaller


class NTuckERSettings(CoreSettings):
    """Settings of ``[model]`` with ``name = "n-tucker"``."""

    # None: 25, or less if the core would be too large.
    entity_dim: PositiveInt | None = None  # type: ignore[assignment]


class NTuckER(MultilinearModel):
    """Tucker scoring with one dense core per arity, one entity table for all."""

    parameters_formula = "|E|d + |R|d_r + d_r d^n"

    def __init__(
        self, sizes: ModelSizes, settings: NTuckERSettings, generator: RandomSource = None
    ) -> None:
        entity_dim = settings.entity_dim or usual_dim(max(sizes.arities))
        super().__init__(
            sizes, settings, generator, entity_dim=entity_dim, relation_dim=settings.relation_dim
        )
        self.core_dropout = settings.core_dropout
        self.relation_dropout = settings.relation_dropout
        self.cores = ParameterDict()
        for n, dims in self.dims.items():
            size = prod(dims)
            if size > MAX_CORE:
                raise ShapeError(
                    f"the core of {dims[0]}·{entity_dim}^{n} = {size:,} numbers is too large; "
                    "lower entity_dim"
                )
            # The query of vectors with unit entries has entries of about one.
            core = torch.randn(dims, generator=generator) / (size / entity_dim) ** 0.5
            self.cores[str(n)] = Parameter(core)

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        core = self.cores[str(len(vectors) - 1)]
        core = drop_out(core, self.core_dropout, self.training)
        first, *others = vectors

        # Facts of one relation share its row, unless it was dropped out. An exported graph cannot
        # depend on which relations are the same.
        is_dropped = self.training and self.relation_dropout
        if relation is None or first is None or is_dropped or is_exporting():
            return tucker_environments(core, vectors, modes)
        distinct, groups = relation.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        numbers = torch.arange(len(groups), device=groups.device)
        row = torch.empty_like(distinct).scatter_(0, groups, numbers)
        return tucker_environments(core, [first[row], *others], modes, groups)


def usual_dim(arity: int) -> int:
    """Return 25, or the largest dimension whose core has no more than 2^24 numbers.

    >>> [usual_dim(arity) for arity in (2, 3, 4, 5, 6)]
    [25, 25, 25, 16, 10]
    """
    return next(d for d in range(USUAL_DIM, 0, -1) if d ** (arity + 1) <= USUAL_CORE)

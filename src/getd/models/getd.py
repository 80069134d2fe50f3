r"""GETD: multilinear scoring whose core is a tensor ring.

.. math::
    \phi(r, e_1, \dots, e_n) = \mathcal{W} \times_1 r \times_2 e_1 \cdots \times_{n+1} e_n, \qquad
    \mathcal{W} \simeq \operatorname{TR}(Z_1, \dots, Z_k)

Liu, Yao and Li: Generalizing Tensor Decomposition for N-ary Relational Knowledge Bases, WWW 2020.
The core is never built.
"""

from math import sqrt
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.nn import ModuleDict, ParameterList

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.algebra.open_ring import OpenRing
from getd.algebra.reshape import check_reshape, reshaped_environments
from getd.algebra.ring import ring_shapes
from getd.errors import ShapeError
from getd.models.aliases import RandomSource, RelationIds
from getd.models.base import ModelSizes, OpenQuestions, other_positions
from getd.models.layers import drop_out
from getd.models.multilinear import CoreSettings, MultilinearModel

CoreShape = tuple[int, int, int]  # (R_j, n_j, R_{j+1})


def scaled_core(shape: CoreShape, generator: RandomSource) -> Tensor:
    """Make a core so that the score of vectors with unit entries is about one, for any ranks."""
    rank, size, _ = shape
    return torch.randn(*shape, generator=generator) / sqrt(size * rank)


def released_core(shape: CoreShape, generator: RandomSource) -> Tensor:
    """Make a core as the authors' code does."""
    # fidelity: uniform between -0.1 and 0.1; see docs/fidelity.md#initialisation
    return 0.2 * torch.rand(*shape, generator=generator) - 0.1


START = {"scaled": scaled_core, "released": released_core}


class GETDSettings(CoreSettings):
    """Settings of ``[model]`` with ``name = "getd"``."""

    ring_shape: tuple[PositiveInt, ...] | None = None  # sizes of the cores; None: one per mode
    ring_ranks: PositiveInt | tuple[PositiveInt, ...] = 40  # of all bonds, or of each
    shared_ring: bool = False  # arities share their cores: n entities take the first n + 1
    # How cores start: scaled to scores of unit variance, or as released, uniform in [-0.1, 0.1].
    ring_start: Literal["scaled", "released"] = "scaled"


class GETD(MultilinearModel):
    """Tucker scoring with a tensor-ring core; one ring per arity or for all, one entity table."""

    parameters_formula = "|E|d + |R|d_r + the cores' R_i n_i R_i+1"

    def __init__(
        self, sizes: ModelSizes, settings: GETDSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes, settings, generator, relation_dim=settings.relation_dim)
        if settings.ring_shape is not None and len(self.arities) > 1:
            raise ShapeError("ring_shape is for facts of one arity; leave it out for mixed arities")
        self.core_dropout = settings.core_dropout
        self.is_shared = settings.shared_ring and len(self.arities) > 1
        if self.is_shared and not isinstance(settings.ring_ranks, int):
            raise ShapeError("shared_ring closes rings of every length: ring_ranks is one number")

        self.rings = ModuleDict()
        for n in [max(self.arities)] if self.is_shared else self.arities:
            shape = settings.ring_shape or self.dims[n]
            check_reshape(shape, self.dims[n])

            make_core = START[settings.ring_start]
            shapes = ring_shapes(shape, settings.ring_ranks)
            self.rings[str(n)] = ParameterList([make_core(each, generator) for each in shapes])

    def cores(self, arity: int) -> list[Tensor]:
        """Return the cores of the ring that facts of this arity are scored with."""
        ring = self.rings[str(max(self.arities) if self.is_shared else arity)]
        assert isinstance(ring, ParameterList)
        return list(ring)[: arity + 1] if self.is_shared else list(ring)

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        arity = len(vectors) - 1
        cores = [drop_out(core, self.core_dropout, self.training) for core in self.cores(arity)]
        return reshaped_environments(cores, self.dims[arity], vectors, modes)

    def open_questions(self, relation: Tensor, entities: Tensor, position: int) -> OpenQuestions:
        arity = self.check_arity(entities)
        cores = self.cores(arity)
        if self.training or tuple(core.shape[1] for core in cores) != self.dims[arity]:
            return super().open_questions(relation, entities, position)

        norms = self.norms.of(arity)
        others = other_positions(entities, position)
        e = norms.entity(self.entity(entities[:, others]), others)  # (b, n - 1, d_e)
        r = norms.relation(self.relation(relation))
        vectors: list[Tensor | None] = [r, *e.unbind(1)]
        vectors.insert(position + 1, None)
        opened = OpenRing(cores, vectors, position + 1)

        def fill(candidates: Tensor) -> Tensor:
            e = norms.entity(self.entity(candidates.flatten()).unsqueeze(1), [position])
            modes = [other + 1 for other in others]
            environments = opened.fill(e.view(*candidates.shape, -1), modes)
            return norms.query(torch.stack(environments, dim=2).flatten(0, 1), others)

        query = norms.query(opened.environment.unsqueeze(1), [position]).squeeze(1)
        return OpenQuestions(query, fill)

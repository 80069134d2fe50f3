r"""ComplEx: DistMult over complex numbers, the second entity conjugated; for facts of two entities.

.. math::
    \phi(r, h, t) = \operatorname{Re} \sum_i r_i \, h_i \, \overline{t_i}
    = \operatorname{Re} \langle r h, t \rangle = \operatorname{Re} \langle \overline{r} t, h \rangle
    = \operatorname{Re} \langle \overline{h} t, r \rangle

Tables hold the real parts of a vector, then its imaginary parts; the real part of a complex dot
product is the plain dot product of such rows.
"""

import torch
from pydantic import PositiveInt
from torch import Tensor

from getd.algebra.aliases import Environments, Modes, Vectors
from getd.choices import NormKind
from getd.models.aliases import Factors, RandomSource, RelationIds
from getd.models.base import ModelSizes
from getd.models.multilinear import MultilinearModel
from getd.models.settings import TensorModelSettings

TINY = 1e-30  # so that the square root of 0 has a gradient


class ComplExSettings(TensorModelSettings):
    """Settings of ``[model]`` with ``name = "complex"``."""

    entity_dim: PositiveInt = 25  # complex numbers, which are twice as many real ones
    norm: NormKind = "none"  # as published


class ComplEx(MultilinearModel):
    """The real part of a sum of products of complex embeddings; facts of two entities."""

    binary_only = True
    parameters_formula = "2|E|d + 2|R|d"

    def __init__(
        self, sizes: ModelSizes, settings: ComplExSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes, settings, generator, entity_dim=2 * settings.entity_dim)

    def environments(self, relation: RelationIds, vectors: Vectors, modes: Modes) -> Environments:
        environments = []
        for mode in modes:
            first, second = (vector for j, vector in enumerate(vectors) if j != mode)
            assert first is not None
            assert second is not None
            environments.append(complex_product(first, second, conjugate=mode != 2))
        return environments

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        """Return the absolute values, ``(b, d)``."""
        absolute = []
        for vector in super().factors(relation, entities):
            real, imaginary = vector.chunk(2, dim=1)
            absolute.append((real.square() + imaginary.square() + TINY).sqrt())
        return absolute


def complex_product(first: Tensor, second: Tensor, conjugate: bool) -> Tensor:
    """Multiply complex numbers, element by element; with ``conjugate`` the first is conjugated.

    >>> complex_product(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), conjugate=False)
    tensor([[-5., 10.]])
    """
    a, b = first.chunk(2, dim=1)
    c, d = second.chunk(2, dim=1)
    if conjugate:
        b = -b
    real = a * c - b * d
    imaginary = a * d + b * c
    return torch.cat([real, imaginary], dim=1)

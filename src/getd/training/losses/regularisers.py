"""Regularisers: what keeps embeddings small."""

from collections.abc import Sequence

import torch
from torch import Tensor


def n3(factors: Sequence[Tensor]) -> Tensor:
    """Cube embeddings ``(b, d)``, sum over dimensions and factors, average over facts."""
    cubes = torch.stack([(factor.abs() ** 3).sum() for factor in factors])
    return cubes.sum() / len(factors[0])

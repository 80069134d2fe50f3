"""Regularisers: what keeps embeddings small."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def n3(factors: Sequence[Tensor]) -> Tensor:
    """Cube embeddings ``(b, d)``, sum over dimensions and factors, and average over facts.

    >>> n3([torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 0.0]])])
    tensor(36.)
    """
    return torch.stack([(factor.abs() ** 3).sum() for factor in factors]).sum() / len(factors[0])

"""What happens to a vector on its way through a model: batch norm, then dropout."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class NormDropout(nn.Module):
    """Batch norm over all rows (where it is on), then dropout; acts on the last axis, ``(…, d)``."""

    def __init__(self, dim: int, batch_norm: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim) if batch_norm else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        rows = vectors.reshape(-1, vectors.shape[-1])
        if self.norm is not None:
            rows = self._normalise(self.norm, rows)
        dropped: Tensor = self.dropout(rows)
        return dropped.view(vectors.shape)

    def _normalise(self, norm: nn.BatchNorm1d, rows: Tensor) -> Tensor:
        if self.training and len(rows) == 1:  # one row has no variance: use what was seen so far
            return nn.functional.batch_norm(
                rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
            )
        normed: Tensor = norm(rows)
        return normed


def embedding(n: int, dim: int, scale: float, generator: torch.Generator | None) -> nn.Embedding:
    """A table of random vectors with the given standard deviation."""
    return nn.Embedding(n, dim, _weight=scale * torch.randn(n, dim, generator=generator))

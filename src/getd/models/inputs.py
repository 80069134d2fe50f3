"""What happens to a vector on its way through a model: batch norm, then dropout."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from getd.models.settings import TensorModelSettings


class NormDropout(nn.Module):
    """Batch norm over all rows (where it is on), then dropout; acts on the last axis, ``(…, d)``."""

    def __init__(self, dim: int, batch_norm: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim) if batch_norm else None
        self.dropout = dropout

    def forward(self, vectors: Tensor) -> Tensor:
        rows = vectors if vectors.dim() == 2 else vectors.reshape(-1, vectors.shape[-1])
        if self.norm is not None:
            rows = self._normalise(self.norm, rows)
        if self.training and self.dropout:
            kept = torch.rand_like(rows) >= self.dropout  # a third of the time of nn.Dropout, which draws bit by bit
            rows = rows * (kept / (1 - self.dropout))
        return rows if vectors.dim() == 2 else rows.view(vectors.shape)

    def _normalise(self, norm: nn.BatchNorm1d, rows: Tensor) -> Tensor:
        """The module's own forward would count batches and check sizes, three times a step."""
        batch_statistics = self.training and len(rows) > 1  # one row has no variance: use what was seen so far
        statistics = norm.running_mean, norm.running_var
        assert norm.momentum is not None
        return torch.batch_norm(
            rows, norm.weight, norm.bias, *statistics, batch_statistics, norm.momentum, norm.eps, False
        )


class Norms(nn.Module):
    """What a model does to relations, given entities, queries and relation queries of facts of one arity.

    Each arity has its own: its facts hold other entities, and its ring or core gives queries of another scale, so one
    running mean over all would fit none of them.
    """

    def __init__(self, relation_dim: int, settings: TensorModelSettings) -> None:
        super().__init__()
        d_e, norm = settings.entity_dim, settings.batch_norm
        self.relation = NormDropout(relation_dim, norm, settings.relation_dropout)
        self.entity = NormDropout(d_e, norm, settings.entity_dropout)
        self.query = NormDropout(d_e, norm, settings.query_dropout)
        self.relation_query = NormDropout(relation_dim, norm, settings.query_dropout)


def norms_by_arity(arities: Sequence[int], relation_dim: int, settings: TensorModelSettings) -> nn.ModuleDict:
    """:class:`Norms` for each arity, by its number as text."""
    return nn.ModuleDict({str(arity): Norms(relation_dim, settings) for arity in arities})


def embedding(n: int, dim: int, scale: float, generator: torch.Generator | None, sparse: bool = False) -> nn.Embedding:
    """A table of random vectors with the given standard deviation; ``sparse`` where few of many rows are looked up."""
    return nn.Embedding(n, dim, sparse=sparse, _weight=scale * torch.randn(n, dim, generator=generator))

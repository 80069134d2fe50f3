"""What happens to a vector on its way through a model: batch norm, then dropout."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from getd.models.norms import NormKind, make_norm
from getd.models.settings import TensorModelSettings


class NormDropout(nn.Module):
    """A norm, then dropout; acts on the last axis, ``(…, d)``."""

    def __init__(self, dim: int, norm: NormKind, dropout: float) -> None:
        super().__init__()
        self.norm = make_norm(norm, dim)
        self.dropout = dropout

    def forward(self, vectors: Tensor, positions: Sequence[int] = ()) -> Tensor:
        """The positions that they stand for do not matter here."""
        rows = vectors if vectors.dim() == 2 else vectors.reshape(-1, vectors.shape[-1])
        if self.norm is not None:
            rows = self.norm(rows)
        if self.training and self.dropout:
            rows = dropped(rows, self.dropout)
        return rows if vectors.dim() == 2 else rows.view(vectors.shape)


def dropped(values: Tensor, share: float) -> Tensor:
    """Numbers with that share of them set to 0, the others made larger for it."""
    kept = (
        torch.rand_like(values) >= share
    )  # a third of the time of nn.Dropout, which draws bit by bit
    return values * (kept / (1 - share))


class PositionNormDropout(nn.Module):
    """The same, each of ``n`` positions with a norm of its own; acts on ``(b, positions, d)``."""

    def __init__(self, n: int, dim: int, norm: NormKind, dropout: float) -> None:
        super().__init__()
        self.each = nn.ModuleList(NormDropout(dim, norm, dropout) for _ in range(n))

    def forward(self, vectors: Tensor, positions: Sequence[int]) -> Tensor:
        columns = zip(positions, vectors.unbind(1), strict=True)
        done = [self.each[position](column) for position, column in columns]
        return torch.stack(done, dim=1) if done else vectors


class Norms(nn.Module):
    """What a model does to relations, given entities, queries and relation queries of facts of one arity.

    Each arity has its own: its facts hold other entities, and its ring or core gives queries of another scale. With
    ``norms_by_position`` each position has its own as well (but not with reciprocal relations, where the open position
    is always the first).
    """

    def __init__(self, arity: int, relation_dim: int, settings: TensorModelSettings) -> None:
        super().__init__()
        d_e, norm = settings.entity_dim, settings.norm
        by_position = settings.norms_by_position and not settings.reciprocal
        of_entities = partial(PositionNormDropout, arity) if by_position else NormDropout
        self.relation = NormDropout(relation_dim, norm, settings.relation_dropout)
        self.entity = of_entities(d_e, norm, settings.entity_dropout)
        self.query = of_entities(d_e, norm, settings.query_dropout)
        self.relation_query = NormDropout(relation_dim, norm, settings.query_dropout)


def norms_by_arity(
    arities: Sequence[int], relation_dim: int, settings: TensorModelSettings
) -> nn.ModuleDict:
    """:class:`Norms` for each arity, by its number as text."""
    return nn.ModuleDict({str(arity): Norms(arity, relation_dim, settings) for arity in arities})


def embedding(
    n: int, dim: int, scale: float, generator: torch.Generator | None, sparse: bool = False
) -> nn.Embedding:
    """A table of random vectors with the given standard deviation; ``sparse`` where few of many rows are looked up."""
    return nn.Embedding(
        n, dim, sparse=sparse, _weight=scale * torch.randn(n, dim, generator=generator)
    )

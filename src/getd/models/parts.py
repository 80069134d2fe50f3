"""Scores that are computed in parts: by position, a few candidates at a time, or by relation."""

from collections.abc import Callable

import torch
from torch import Tensor

from getd.models.aliases import OwnAndShared, Shared


def score_each_position(
    score: Callable[[int, Tensor], Tensor], own: Tensor, shared: Shared
) -> OwnAndShared:
    """Score candidates ``(b, n, k)`` and ``(n, m)``: ``score`` gets a position and its own."""
    scores = [score(position, ids) for position, ids in enumerate(own.unbind(1))]
    own_scores = torch.stack(scores, dim=1)
    if shared is None:
        return own_scores, None
    scores = [score(position, ids) for position, ids in enumerate(shared)]
    return own_scores, torch.stack(scores, dim=1)


def score_in_parts(
    score: Callable[[Tensor], Tensor], items: Tensor, size: int, dim: int = -1
) -> Tensor:
    """Score items, ``size`` of them at a time or one; scores are joined along their last axis."""
    parts = torch.split(items, max(1, size), dim=dim)
    return torch.cat([score(part) for part in parts], dim=-1)


def by_relation(relation: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    """Score questions ``(b, m)``; ``score`` gets the rows of one relation, which share work."""
    _, group, counts = torch.unique(relation, return_inverse=True, return_counts=True)
    order = group.argsort()
    parts = torch.split(order, counts.tolist())
    scores = torch.cat([score(rows) for rows in parts])
    return scores[order.argsort()]

"""The best columns of each row of scores."""

from math import inf

import torch
from torch import Tensor

BLOCK = 64  # columns that are compared by their highest score first
MIN_SCORES = 2**16  # with fewer, comparing all at once is as fast
MIN_BLOCKS = 8  # for each of the best scores, so that few blocks are left


def best_columns(scores: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Return the best scores of each row, at most ``top``, and their columns: ``(b, k)`` each.

    The best comes first, of equal ones the earlier.

    >>> best_columns(torch.tensor([[1.0, 3.0, 2.0, 3.0, 1.0]]), 4)
    (tensor([[3., 3., 2., 1.]]), tensor([[1, 3, 2, 0]]))
    """
    best, columns = _highest(scores, min(top + 1, scores.shape[1]))
    following = best[:, 1:]
    is_level = (following == best[:, :-1]) & (following > -inf)
    is_tied = is_level.any(dim=1)
    if is_tied.any():
        ordered = scores[is_tied].sort(dim=1, descending=True, stable=True)
        columns[is_tied] = ordered.indices[:, : columns.shape[1]]  # the scores are the same
    return best[:, :top], columns[:, :top]


def _highest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the ``k`` highest scores of each row and their columns; of equal ones any.

    They lie in the ``k`` blocks whose highest scores are highest, or after the last block.
    """
    b, n = scores.shape
    n_blocks = n // BLOCK
    if b * n < MIN_SCORES or n_blocks < MIN_BLOCKS * k:
        return scores.topk(k)

    end = n_blocks * BLOCK
    blocks = scores[:, :end].reshape(b, n_blocks, BLOCK).amax(dim=2).topk(k).indices
    inside = blocks.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=scores.device)
    after = torch.arange(end, n, device=scores.device).expand(b, -1)
    columns = torch.cat([inside.flatten(1), after], dim=1)

    best, index = scores.gather(1, columns).topk(k)
    return best, columns.gather(1, index)

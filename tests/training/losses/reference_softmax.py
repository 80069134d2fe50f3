"""The filtered softmax loss, one candidate at a time."""

from __future__ import annotations

import math

from torch import Tensor


def softmax_by_hand(
    query: Tensor, table: Tensor, target: Tensor, left_out: tuple[Tensor, Tensor], smoothing: float
) -> float:
    """The formula, one candidate at a time."""
    total = 0.0
    removed = set(zip(left_out[0].tolist(), left_out[1].tolist(), strict=True))
    for row, answer in enumerate(target.tolist()):
        candidates = [c for c in range(len(table)) if (row, c) not in removed]
        scores = {c: (query[row] @ table[c]).item() for c in candidates}
        log_sum = math.log(sum(math.exp(score) for score in scores.values()))
        for c in candidates:
            weight = (1 - smoothing) * (c == answer) + smoothing / len(candidates)
            total += weight * (log_sum - scores[c])
    return total

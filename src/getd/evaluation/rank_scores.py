r"""Filtered ranks from a table of scores, by counting.

.. math::
    \operatorname{rank} = 1 + \#\{c : s_c > s_t + \tau\}
    + \tfrac12 \#\{c \neq t : |s_c - s_t| \le \tau\}, \qquad c \text{ not known}

The tolerance :math:`\tau` is what rounding alone can put between two scores that should be equal.

Shapes: ``b`` questions, ``m`` candidates.
"""

from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.choices import Ties
from getd.errors import NonFiniteScores, ShapeError, check_choice
from getd.facts.known_answers import Answers

TIES = get_args(Ties)
TILE = 2**17  # scores that a thread compares at a time: 1 MB with the outcome, in its cache
MAX_EXACT = 2**24  # float32 counts exactly up to this


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of answers, from 1."""

    rank: Floats  # (n, arity) for facts, (b,) for a table of scores
    candidates: Ids  # how many were ranked, the answer included: all but the other known answers


def rank_scores(
    scores: Tensor,
    answers: Ids | Tensor,
    known: Answers | None = None,
    *,
    ties: Ties = "realistic",
    tolerance: float | Tensor = 0.0,
) -> Ranks:
    """Rank one candidate of each row of scores among all of the row but the other known answers.

    ``scores`` are ``(b, m)``, higher is better; they are read once, and not changed. ``answers``
    ``(b,)`` are the columns to rank. ``known`` come from :meth:`KnownAnswers.lookup`; whether they
    include the ranked answer makes no difference. ``ties`` is as in
    :func:`~getd.evaluation.ranks.rank_facts`. Scores that differ from the answer's by no more than
    ``tolerance``, a number or ``(b,)``, are level with it.

    Raises :class:`NonFiniteScores` if a score is NaN or infinite, and :class:`ShapeError` if there
    are not as many answers, or rows of known answers, as rows of scores.

    >>> scores = torch.tensor([[0.9, 0.5, 0.5, 0.1], [0.9, 0.5, 0.5, 0.1]])
    >>> rank_scores(scores, np.array([1, 3])).rank.tolist()
    [2.5, 4.0]
    >>> known = Answers(np.array([0, 2, 2]), np.array([0, 1]))
    >>> rank_scores(scores, np.array([1, 3]), known).rank.tolist()
    [1.5, 4.0]
    """
    check_choice("ties", ties, TIES)
    ids = answers.cpu().numpy() if isinstance(answers, Tensor) else answers
    b, m = scores.shape
    if known is None:
        known = Answers(np.zeros(b + 1, dtype=np.int64), ids[:0])
    for size, what in ((len(ids), "answers"), (len(known.offsets) - 1, "rows of known answers")):
        if size != b:
            raise ShapeError(f"expected {b} {what}, one for each row of scores, found {size}")

    others = np.stack(known.others(ids))
    device = scores.device
    with torch.no_grad():
        target = scores.gather(1, torch.tensor(ids, device=device)[:, None])
        slack = torch.as_tensor(tolerance, dtype=target.dtype, device=device).reshape(-1, 1)
        level = Level(target - slack, target + slack)
        counts = count_rivals(scores, level, *torch.tensor(others, device=device))

    candidates = m - np.bincount(others[0], minlength=b)
    return to_ranks(counts.cpu().numpy(), candidates, ties)


class Level(NamedTuple):
    """The scores that are level with the answer's, both ends included: ``(b, 1)`` each."""

    low: Tensor
    high: Tensor


def count_rivals(scores: Tensor, level: Level, row: Tensor, column: Tensor) -> Tensor:
    """Count in each row the scores above the level, and those above or in it: ``(2, b)``, float64.

    ``scores`` are ``(b, m)``; those at ``(row, column)`` do not count. Everything is done to a tile
    of scores while it is in cache. Comparisons give floats, which torch adds several times faster
    than booleans; a sum of at most ``MAX_EXACT`` ones is exact.
    """
    tile_size = min(TILE * torch.get_num_threads(), MAX_EXACT)
    b, m = scores.shape
    rows = max(1, tile_size // max(1, m))
    columns = max(1, min(tile_size, m))
    kind = torch.promote_types(scores.dtype, torch.float32)
    flags = scores.new_empty(min(rows, b), columns, dtype=kind)
    counts = scores.new_zeros(2, b, dtype=torch.float64)
    finite = True

    for part in torch.split(scores, columns, dim=1):
        sums = []
        tiles = [torch.split(tensor, rows) for tensor in (part, *level)]
        for tile, low, high in zip(*tiles, strict=True):
            flag = flags[: len(tile), : tile.shape[1]]
            above = torch.gt(tile, high, out=flag).sum(dim=1)
            at_least = torch.ge(tile, low, out=flag).sum(dim=1)
            total = tile.sum(dim=1, dtype=kind)  # not finite if a score is not
            sums.append(torch.stack([above, at_least, total]))

        part_sums = torch.cat(sums, dim=1)
        counts += part_sums[:2]
        finite &= bool(part_sums[2].isfinite().all())
    if not finite:
        check_finite(scores)

    left_out = scores[row, column]
    is_counted = torch.stack([left_out > level.high[row, 0], left_out >= level.low[row, 0]])
    return counts.index_add_(1, row, is_counted.double(), alpha=-1)


def to_ranks(counts: Floats, candidates: Ids, ties: Ties) -> Ranks:
    """Turn the counts of :func:`count_rivals` into ranks; the answer is level with itself."""
    above, at_least = counts
    level = at_least - above - 1
    within = {"realistic": level / 2, "optimistic": 0 * level, "pessimistic": level}[ties]
    return Ranks(1 + above + within, candidates)


def check_finite(scores: Tensor) -> None:
    """Reject scores that are not finite; the sum of large finite ones may be infinite."""
    wrong = int((~scores.isfinite()).sum())
    if wrong:
        raise NonFiniteScores(f"{wrong} of {scores.numel()} scores are NaN or infinite")

r"""Filtered ranks from a table of scores, by counting.

.. math::
    \operatorname{rank} = 1 + \#\{c : s_c > s_t + \tau\} + \tfrac12 \#\{c \neq t : |s_c - s_t| \le \tau\}, \qquad
    c \text{ not known}

The tolerance :math:`\tau` is what rounding alone can put between two scores that should be equal.

Shapes: ``b`` questions, ``m`` candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.errors import ConfigError, NonFiniteScores, ShapeError, nearest
from getd.facts.known_answers import Answers

Ties = Literal["realistic", "optimistic", "pessimistic"]
TILE = (
    2**17
)  # scores that a thread compares at a time: with the outcome 1 MB, in the cache of one core
EXACT = 2**24  # float32 counts as far


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of answers, counted from 1: ``(n, arity)`` for facts, ``(n, 1)`` for relations, ``(b,)`` for scores."""

    rank: Floats
    candidates: Ids  # how many were ranked, the answer among them: all but the other known answers


def rank_scores(
    scores: Tensor,
    answers: Ids | Tensor,
    known: Answers | None = None,
    *,
    ties: Ties = "realistic",
    tolerance: float | Tensor = 0.0,
) -> Ranks:
    """Rank one candidate of each row of scores among all candidates of the row but the other known answers.

    Parameters
    ----------
    scores
        ``(b, m)``, higher is better; they are left as they are.
    answers
        ``(b,)``, the columns to rank.
    known
        The known answers of each row, as :meth:`KnownAnswers.lookup` gives them; none are left out where it is not
        given. Whether the ranked answer is among them makes no difference.
    ties
        As in :func:`~getd.evaluation.ranks.rank_facts`.
    tolerance
        Scores that differ from the answer's by no more than this are level with it; one number, or ``(b,)``.

    Raises
    ------
    NonFiniteScores
        If a score is NaN or infinite.
    ShapeError
        If there are not as many answers, or rows of known answers, as rows of scores.

    Notes
    -----
    Scores are read from memory once; nothing of their size is made.

    Examples
    --------
    >>> scores = torch.tensor([[0.9, 0.5, 0.5, 0.1], [0.9, 0.5, 0.5, 0.1]])
    >>> rank_scores(scores, np.array([1, 3])).rank.tolist()  # in the first row 1 and 2 share the ranks 2 and 3
    [2.5, 4.0]
    >>> known = Answers(np.array([0, 2, 2]), np.array([0, 1]))  # 0 and 1 answer the first question
    >>> rank_scores(scores, np.array([1, 3]), known).rank.tolist()
    [1.5, 4.0]
    """
    check_ties(ties)
    ids = answers.cpu().numpy() if isinstance(answers, Tensor) else answers
    known = Answers(np.zeros(len(scores) + 1, dtype=np.int64), ids[:0]) if known is None else known
    for found, what in ((len(ids), "answers"), (len(known.offsets) - 1, "rows of known answers")):
        if found != len(scores):
            raise ShapeError(
                f"expected {len(scores)} {what}, one for each row of scores, found {found}"
            )
    row, column = known.others(ids)
    with torch.no_grad():
        target = scores.gather(1, torch.tensor(ids, device=scores.device)[:, None])
        slack = torch.as_tensor(tolerance, dtype=target.dtype, device=scores.device).reshape(-1, 1)
        left_out = torch.tensor(np.stack([row, column]), device=scores.device)
        counts = count_rivals(scores, Level(target - slack, target + slack), *left_out)
    return to_ranks(
        counts.cpu().numpy(), scores.shape[1] - np.bincount(row, minlength=len(scores)), ties
    )


class Level(NamedTuple):
    """The scores that are level with the answer's, both ends included: ``(b, 1)`` each."""

    low: Tensor
    high: Tensor


def count_rivals(scores: Tensor, level: Level, row: Tensor, column: Tensor) -> Tensor:
    """How many of each row's scores are above the level, and how many at least in it: ``(2, b)``, float64.

    ``scores`` are ``(b, m)``; those at ``(row, column)`` do not count. A tile at a time, all that is done to a score is
    done while it is in cache. Comparisons give floats, as torch adds these several times faster than booleans; a sum of
    at most ``EXACT`` ones is exact.
    """
    tile_size = min(TILE * torch.get_num_threads(), EXACT)
    rows, columns = (
        max(1, tile_size // max(1, scores.shape[1])),
        max(1, min(tile_size, scores.shape[1])),
    )
    kind = torch.promote_types(scores.dtype, torch.float32)
    flags = torch.empty(min(rows, len(scores)), columns, dtype=kind, device=scores.device)
    counts = torch.zeros(2, len(scores), dtype=torch.float64, device=scores.device)
    finite = True
    for part in torch.split(scores, columns, dim=1):
        total, above, at_least = [], [], []
        for tile, low, high in zip(
            *(torch.split(tensor, rows) for tensor in (part, *level)), strict=True
        ):
            flag = flags[: len(tile), : tile.shape[1]]
            total.append(tile.sum(dim=1, dtype=kind))  # NaN and infinity come through
            above.append(torch.gt(tile, high, out=flag).sum(dim=1))
            at_least.append(torch.ge(tile, low, out=flag).sum(dim=1))
        counts += torch.stack([torch.cat(above), torch.cat(at_least)])
        finite &= bool(torch.cat(total).isfinite().all())
    if not finite:
        check_finite(scores)

    left_out = scores[row, column]
    counts[0].index_add_(0, row, (left_out > level.high[row, 0]).double(), alpha=-1)
    counts[1].index_add_(0, row, (left_out >= level.low[row, 0]).double(), alpha=-1)
    return counts


def to_ranks(counts: Floats, candidates: Ids, ties: Ties) -> Ranks:
    """Ranks from the counts of :func:`count_rivals`; the answer itself is one of those at least level."""
    above, at_least = counts
    level = at_least - above - 1
    within = {"realistic": level / 2, "optimistic": 0 * level, "pessimistic": level}[ties]
    return Ranks(1 + above + within, candidates)


def check_ties(ties: str) -> None:
    """Refuse a rule for ties there is not."""
    rules = get_args(Ties)
    if ties not in rules:
        raise ConfigError(
            f"ties: expected one of {', '.join(rules)}, found {ties!r}{nearest(ties, rules)}"
        )


def check_finite(scores: Tensor) -> None:
    """Refuse scores that are not finite; a sum of large ones can be infinite though each is finite."""
    wrong = int((~scores.isfinite()).sum())
    if wrong:
        raise NonFiniteScores(f"{wrong} of {scores.numel()} scores are NaN or infinite")

r"""The paper's loss (eq. 8 and 9): a softmax over all candidates that make no other training fact true.

.. math::
    -\phi_t + \log \sum_{c \in C} e^{\phi_c}, \qquad
    C = \{t\} \cup \{c : c \text{ makes no training fact true}\}

Value and gradients come from one pass over tiles of scores that stay in the caches: a tile is scored, exponentiated,
filtered and multiplied into both gradients before the next one takes its place, and the division by the sum is folded
into the queries. Where candidates are so many that a tile cannot hold all of them for enough questions, they are cut
too, and every tile is scored twice: for the sums, then for the gradients.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

LEAST_ROWS = 96  # questions in a tile: with fewer, matrix products are slow
MOST_ROWS = 256  # questions in a tile that does not hold all candidates
ACCELERATOR_ROOM = 1 << 26  # scores in a tile where no cache is to be met
SAFE = 1e30  # sums of exponentials between 1 / SAFE and SAFE have lost nothing


class TileShape(NamedTuple):
    """How scores are cut: so many questions by so many candidates at a time."""

    rows: int
    columns: int


def tile_shape(n_questions: int, n_candidates: int, room: int | None = None) -> TileShape:
    """The tiles for so many scores, each of about ``room`` (where not given: of what the caches hold).

    All candidates at once, where that is not far beyond the caches: scoring twice costs more. Measured with 1,000 to
    1,000,000 candidates.

    >>> tile_shape(384, 12_000, room=800_000)          # all candidates of 96 questions, 4 times
    TileShape(rows=96, columns=12000)
    >>> tile_shape(384, 1_000_000, room=800_000)       # too many candidates: they are cut
    TileShape(rows=256, columns=3125)
    """
    room = room or cache_room()
    if n_candidates * 8 <= room:
        parts = -(-n_questions // max(LEAST_ROWS, room // max(n_candidates, 1)))
        return TileShape(-(-n_questions // max(parts, 1)), n_candidates)
    rows = min(n_questions, MOST_ROWS)
    return TileShape(rows, max(1, min(n_candidates, room // rows)))


def cache_room() -> int:
    """How many scores the second-level caches of the cores that torch uses hold, a quarter kept for all else."""
    return torch.get_num_threads() * _cache_bytes() * 3 // 16


@cache
def _cache_bytes() -> int:
    """Bytes of one core's second-level cache."""
    try:
        found = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told here
        found = 0
    return found if found > 0 else 1 << 20


class Gradients(NamedTuple):
    """Where a loss leaves its gradients."""

    query: Tensor  # (b, d), overwritten
    table: Tensor  # (n, d), added to


def softmax_gradients(
    query: Tensor,
    table: Tensor,
    target: Tensor,
    left_out: tuple[Tensor, Tensor],
    smoothing: float,
    weight: float,
    into: Gradients,
) -> Tensor:
    """``weight`` times the summed loss of questions; its gradients by query and table are left in ``into``.

    Parameters
    ----------
    query
        ``(b, d)``, one vector a question.
    table
        ``(n, d)``, one vector a candidate.
    target
        ``(b,)``, the right answer of each.
    left_out
        Rows (ascending) and columns of the candidates that take no part, each pair once; the target must not be among
        them.
    smoothing
        Weight that goes to all candidates that take part, alike; the rest stays on the target.

    Examples
    --------
    >>> one, nothing = torch.tensor([[1.0]]), (torch.tensor([], dtype=torch.long),) * 2
    >>> into = Gradients(torch.empty(1, 1), torch.zeros(4, 1))
    >>> softmax_gradients(one, torch.zeros(4, 1), torch.tensor([2]), nothing, 0, 1, into).exp()  # chance: 1 in 4
    tensor(4.)
    >>> into.table.flatten()
    tensor([ 0.2500,  0.2500, -0.7500,  0.2500])
    """
    on_cpu = query.device.type == "cpu"
    shape = tile_shape(len(query), len(table), None if on_cpu else ACCELERATOR_ROOM)
    buffer = query.new_empty(shape.rows * shape.columns)
    rows, columns = left_out
    log_sums = torch.empty_like(query[:, 0])
    for start in range(0, len(query), shape.rows):
        stop = min(start + shape.rows, len(query))
        first, last = torch.searchsorted(rows, torch.tensor([start, stop], device=rows.device)).tolist()
        tiles = _cut(table, rows[first:last] - start, columns[first:last], shape.columns)
        log_sums[start:stop] = _block(query[start:stop], tiles, buffer, weight, into.query[start:stop], into.table)

    answers = table[target]
    into.query.sub_(answers, alpha=weight * (1 - smoothing))
    into.table.index_add_(0, target, query, alpha=weight * (smoothing - 1))
    loss = log_sums.sum() - (1 - smoothing) * (query * answers).sum()
    if smoothing:
        loss = loss - _smooth(query, table, left_out, smoothing, weight, into)
    return weight * loss


class _Tile(NamedTuple):
    """Some candidates, and which of their scores take no part (as indices of the flattened tile)."""

    columns: slice
    vectors: Tensor  # (m, d)
    left_out: Tensor


def _cut(table: Tensor, rows: Tensor, columns: Tensor, width: int) -> list[_Tile]:
    n = len(table)
    if width >= n:
        return [_Tile(slice(0, n), table, rows * n + columns)]
    columns, order = torch.sort(columns, stable=True)
    starts = list(range(0, n, width))
    ends = torch.searchsorted(columns, torch.tensor([*starts, n], device=columns.device)).tolist()
    tiles = []
    for number, start in enumerate(starts):
        stop, here = min(start + width, n), slice(ends[number], ends[number + 1])
        left_out = rows[order[here]] * (stop - start) + columns[here] - start
        tiles.append(_Tile(slice(start, stop), table[start:stop], left_out))
    return tiles


def _block(
    query: Tensor, tiles: Sequence[_Tile], buffer: Tensor, weight: float, query_grad: Tensor, table_grad: Tensor
) -> Tensor:
    """The log-sum-exps ``(b,)`` of some questions, the gradients of their sum left behind.

    Scores are exponentiated as they are, and only where that goes wrong (as it does beyond 69) less the largest.
    """
    shift = None
    sums, tile = _sums(query, tiles, buffer, shift)
    if not bool(((sums > 1 / SAFE) & (sums < SAFE)).all()):
        shift = _largest(query, tiles, buffer)
        sums, tile = _sums(query, tiles, buffer, shift)
    scaled = query * (weight / sums)[:, None]
    query_grad.zero_()
    for part in tiles:
        if len(tiles) > 1:
            tile = _exponentials(query, part, buffer, shift)
        query_grad.addmm_(tile, part.vectors)
        table_grad[part.columns].addmm_(tile.T, scaled)
    query_grad.mul_((weight / sums)[:, None])
    return sums.log() if shift is None else sums.log() + shift


def _sums(query: Tensor, tiles: Sequence[_Tile], buffer: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sums of the exponentials, ``(b,)``, and the last tile."""
    sums = torch.zeros_like(query[:, 0])
    for part in tiles:
        tile = _exponentials(query, part, buffer, shift)
        sums += tile.sum(dim=1)
    return sums, tile


def _exponentials(query: Tensor, part: _Tile, buffer: Tensor, shift: Tensor | None) -> Tensor:
    scores = _scores(query, part, buffer)
    if shift is not None:
        scores.sub_(shift[:, None])
    scores.exp_().view(-1).index_fill_(0, part.left_out, 0)
    return scores


def _largest(query: Tensor, tiles: Sequence[_Tile], buffer: Tensor) -> Tensor:
    largest = torch.full_like(query[:, 0], -torch.inf)
    for part in tiles:
        scores = _scores(query, part, buffer)
        scores.view(-1).index_fill_(0, part.left_out, -torch.inf)
        torch.maximum(largest, scores.amax(dim=1), out=largest)
    return largest


def _scores(query: Tensor, part: _Tile, buffer: Tensor) -> Tensor:
    shape = len(query), len(part.vectors)
    return torch.mm(query, part.vectors.T, out=buffer[: shape[0] * shape[1]].view(shape))


def _smooth(
    query: Tensor, table: Tensor, left_out: tuple[Tensor, Tensor], smoothing: float, weight: float, into: Gradients
) -> Tensor:
    """``smoothing`` times the mean score of those that take part, summed over questions; its gradients subtracted."""
    rows, columns = left_out
    n_left = len(table) - torch.bincount(rows, minlength=len(query))
    vectors = table.sum(dim=0).repeat(len(query), 1).index_add_(0, rows, table[columns], alpha=-1)
    mean = vectors * (smoothing / n_left.to(query.dtype))[:, None]  # (b, d)
    share = query * (smoothing / n_left.to(query.dtype))[:, None]  # (b, d)
    into.query.sub_(mean, alpha=weight)
    into.table.sub_(share.sum(dim=0), alpha=weight)
    into.table.index_add_(0, columns, share[rows], alpha=weight)
    return (query * mean).sum()


def multi_answer_loss(scores: Tensor, labels: Tensor, kind: str, smoothing: float = 0.0) -> Tensor:
    """The mean loss of questions with all their answers, ``labels`` a 0/1 matrix like ``scores``.

    ``softmax`` is the cross entropy to the uniform distribution over the answers, ``bce`` the binary one of each score,
    ``bce-over-softmax`` the binary one of the softmax of the scores.
    """
    if kind == "softmax":
        wanted = labels / labels.sum(dim=1, keepdim=True)
        wanted = (1 - smoothing) * wanted + smoothing / labels.shape[1]
        return -(wanted * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()
    labels = (1 - smoothing) * labels + smoothing / labels.shape[1]
    if kind == "bce":
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
    # fidelity: the authors take BCE over softmax; see docs/fidelity.md#loss
    return torch.nn.functional.binary_cross_entropy(torch.softmax(scores, dim=1), labels)

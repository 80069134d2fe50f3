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

import itertools
import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

LEAST_ROWS = 96  # questions in a tile: with fewer, matrix products are slow
MOST_ROWS = 256  # questions in a tile that does not hold all candidates
ACCELERATOR_ROOM = 1 << 26  # scores in a tile where no cache is to be met
LOG_SAFE = 69  # sums of exponentials between e^-69 and e^69 have lost nothing


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
    shape = tile_shape(len(query), len(table), None if query.device.type == "cpu" else ACCELERATOR_ROOM)
    blocks = _cut(table, left_out, len(query), shape)
    buffer = query.new_empty(shape.rows * shape.columns)
    log_sums, scale = torch.empty_like(query[:, 0]), torch.empty_like(query[:, :1])
    for start, tiles in blocks:
        here = slice(start, start + shape.rows)
        log_sums[here] = _block(query[here], tiles, buffer, weight, scale[here], into.query[here], into.table)
    into.query.mul_(scale)

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


def _cut(
    table: Tensor, left_out: tuple[Tensor, Tensor], n_questions: int, shape: TileShape
) -> list[tuple[int, list[_Tile]]]:
    """The first question of each block, and its tiles."""
    rows, columns = left_out
    starts = list(range(0, n_questions, shape.rows))
    ends = _ends(rows, [*starts, n_questions])
    if shape.columns >= len(table):
        flat, everything = rows * len(table) + columns, slice(0, len(table))
        pairs = zip(starts, itertools.pairwise(ends), strict=True)
        return [(start, [_Tile(everything, table, flat[a:b] - start * len(table))]) for start, (a, b) in pairs]
    blocks = []
    for start, (a, b) in zip(starts, itertools.pairwise(ends), strict=True):
        blocks.append((start, _cut_columns(table, rows[a:b] - start, columns[a:b], shape.columns)))
    return blocks


def _cut_columns(table: Tensor, rows: Tensor, columns: Tensor, width: int) -> list[_Tile]:
    columns, order = torch.sort(columns, stable=True)
    starts = list(range(0, len(table), width))
    ends = _ends(columns, [*starts, len(table)])
    tiles = []
    for start, (a, b) in zip(starts, itertools.pairwise(ends), strict=True):
        part = slice(start, min(start + width, len(table)))
        tiles.append(_Tile(part, table[part], rows[order[a:b]] * (part.stop - start) + columns[a:b] - start))
    return tiles


def _ends(ascending: Tensor, values: list[int]) -> list[int]:
    """Where each of these values would stand."""
    found: list[int] = torch.searchsorted(ascending, torch.tensor(values, device=ascending.device)).tolist()
    return found


def _block(
    query: Tensor,
    tiles: Sequence[_Tile],
    buffer: Tensor,
    weight: float,
    scale: Tensor,
    query_grad: Tensor,
    table_grad: Tensor,
) -> Tensor:
    """The log-sum-exps ``(b,)`` of some questions, and the gradients of their sum; that by query lacks its ``scale``.

    Scores are exponentiated as they are, and only where that goes wrong (as it does beyond 69) less the largest.
    """
    shift = None
    sums, tile = _sums(query, tiles, buffer, shift)
    log_sums = sums.log()
    if not torch.linalg.vector_norm(log_sums, torch.inf).item() < LOG_SAFE:  # NaN comes here too
        shift = _largest(query, tiles, buffer)
        sums, tile = _sums(query, tiles, buffer, shift)
        log_sums = sums.log() + shift
    torch.div(weight, sums[:, None], out=scale)
    scaled = query * scale
    for number, part in enumerate(tiles):
        if len(tiles) > 1:
            tile = _exponentials(query, part, buffer, shift)
        torch.addmm(query_grad, tile, part.vectors, beta=min(number, 1), out=query_grad)
        table_grad[part.columns].addmm_(tile.T, scaled)
    return log_sums


def _sums(query: Tensor, tiles: Sequence[_Tile], buffer: Tensor, shift: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sums of the exponentials, ``(b,)``, and the last tile."""
    tile = _exponentials(query, tiles[0], buffer, shift)
    sums = tile.sum(dim=1)
    for part in tiles[1:]:
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

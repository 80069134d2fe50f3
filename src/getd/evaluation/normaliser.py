r"""The sums that turn scores into probabilities, tile by tile.

.. math:: \log_2 \sum_{c \in C} 2^{\phi_c}, \qquad \phi_c = \langle q, e_c \rangle + a_c

The scores of all candidates are never kept: a tile is made, exponentiated and summed while it is in
the caches. Powers of 2 take a quarter of the time of those of e; queries are scaled to suit them.
Scores are exponentiated as they are. Only if a sum leaves the safe range, all are made again, with
the largest score of each question taken off.
"""

import threading
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from getd.io.deadline import check_deadline

TILE = 2**20  # scores held at a time: 4 MB, near the caches
MIN_ROWS = 64  # questions in a tile: with fewer, matrix products are slow
SAFE_SUM = 2.0**100  # float32 sums between its reciprocal and this are exact enough


class Cells(NamedTuple):
    """Cells of a table of scores, and what is added to them."""

    rows: Tensor  # (t,): ascending
    columns: Tensor  # (t,)
    values: Tensor  # (t,)


def log2_sums(queries: Tensor, table: Tensor, cells: Sequence[Cells] = ()) -> Tensor:
    """Return the logarithm to base 2 of each row's sum of powers of 2, ``(b,)`` in float64.

    Scores are dot products of ``queries`` ``(b, d)`` and ``table`` ``(n, d)``, plus the values of
    ``cells``: minus infinity leaves a candidate out.

    >>> left_out = Cells(torch.tensor([0]), torch.tensor([2]), torch.tensor([-torch.inf]))
    >>> log2_sums(torch.ones(1, 1), torch.ones(5, 1), [left_out])  # four times 2 ** 1
    tensor([3.], dtype=torch.float64)
    """
    sums = queries.new_zeros(len(queries), dtype=torch.float64)
    for rows, scores in _tiles(queries, table, cells):
        sums[rows] += scores.exp2_().sum(dim=1)
    low, high = torch.aminmax(sums)
    if low.item() > 1 / SAFE_SUM and high.item() < SAFE_SUM:  # NaN is neither
        return sums.log2_()

    largest = torch.full_like(queries[:, :1], torch.finfo(queries.dtype).min)
    for rows, scores in _tiles(queries, table, cells):
        largest[rows] = largest[rows].maximum(scores.amax(dim=1, keepdim=True))
    sums.zero_()
    for rows, scores in _tiles(queries, table, cells):
        sums[rows] += scores.sub_(largest[rows]).exp2_().sum(dim=1)
    return sums.log2_().add_(largest[:, 0])


_kept = threading.local()


def _buffer(like: Tensor, size: int) -> Tensor:
    """Return memory for scores, the same for every call: fresh memory is mapped page by page."""
    buffer: Tensor | None = getattr(_kept, "buffer", None)
    if buffer is None or buffer.numel() < size or buffer.dtype != like.dtype:
        buffer = _kept.buffer = like.new_empty(max(size, TILE))
    return buffer


def _cuts(rows: Tensor, starts: list[int]) -> list[int]:
    """Return how many cells there are before each row of ``starts``."""
    if len(starts) == 2:
        return [0, len(rows)]
    return torch.searchsorted(rows, torch.tensor(starts, device=rows.device)).tolist()


def _tiles(
    queries: Tensor, table: Tensor, cells: Sequence[Cells]
) -> Iterator[tuple[slice, Tensor]]:
    """Yield rows and some of their scores, which may be overwritten."""
    b = len(queries)
    n = len(table)
    height = max(1, min(b, max(MIN_ROWS, TILE // n)))
    width = min(n, TILE // height)
    buffer = _buffer(queries, height * width)

    cells = [each for each in cells if len(each.rows)]
    starts = [*range(0, b, height), b]
    ends = [_cuts(each.rows, starts) for each in cells]
    for number, query in enumerate(torch.split(queries, height)):
        check_deadline()
        start = number * height
        for first in range(0, n, width):
            vectors = table[first : first + width]
            shape = (len(query), len(vectors))
            scores = torch.mm(query, vectors.t(), out=buffer[: prod(shape)].view(shape))

            for each, end in zip(cells, ends, strict=True):
                inside = slice(end[number], end[number + 1])
                columns = each.columns[inside] - first
                flat = (each.rows[inside] - start) * len(vectors) + columns
                values = each.values[inside]
                if width < n:
                    kept = (columns >= 0) & (columns < len(vectors))
                    flat = flat[kept]
                    values = values[kept]
                scores.view(-1).index_add_(0, flat, values)
            yield slice(start, start + len(query)), scores

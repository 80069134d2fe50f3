r"""The sums that turn scores into probabilities, tile by tile.

.. math:: \log_2 \sum_c 2^{\phi_c}, \qquad \phi_c = \langle q, e_c \rangle + a_c

A tile of scores is made, exponentiated and summed while it is in the caches. Powers of 2 take a
quarter of the time of those of e. Scores are exponentiated as they are; only if a sum leaves the
safe range, all are made again, with the largest score of each question taken off.
"""

import threading
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from getd.evaluation.precision import multiply
from getd.io.deadline import check_deadline
from getd.models.base import Cells

TILE = 2**20  # scores held at a time: 4 MB, near the caches
MIN_ROWS = 64  # questions in a tile: with fewer, matrix products are slow
SAFE_SUM = 2.0**100  # float32 sums between its reciprocal and this are exact enough
_kept = threading.local()


def log2_sums(queries: Tensor, table: Tensor, cells: Sequence[Cells] = ()) -> Tensor:
    """Return the logarithm to base 2 of each row's sum of powers of 2, ``(b,)`` in float64.

    Scores are dot products of ``queries`` ``(b, d)`` and ``table`` ``(n, d)``, plus the values of
    ``cells``: minus infinity leaves a candidate out. A table in bf16 rounds the products.

    >>> left_out = Cells(torch.tensor([0]), torch.tensor([2]), torch.tensor([-torch.inf]))
    >>> log2_sums(torch.ones(1, 1), torch.ones(5, 1), [left_out])  # four times 2 ** 1
    tensor([3.], dtype=torch.float64)
    """
    sums = queries.new_zeros(len(queries), 1, dtype=torch.float64)
    for rows, scores in _tiles(queries, table, cells):
        sums[rows] += scores.exp2_().sum(dim=1, keepdim=True)
    low, high = torch.aminmax(sums)
    if low.item() > 1 / SAFE_SUM and high.item() < SAFE_SUM:  # NaN is neither
        return sums.log2_()[:, 0]

    largest = torch.full_like(sums, torch.finfo(queries.dtype).min, dtype=queries.dtype)
    sums.zero_()
    for rows, scores in _tiles(queries, table, cells):
        higher = scores.amax(dim=1, keepdim=True).maximum(largest[rows])
        sums[rows] *= (largest[rows] - higher).exp2_()
        sums[rows] += scores.sub_(higher).exp2_().sum(dim=1, keepdim=True)
        largest[rows] = higher
    return (sums.log2_() + largest)[:, 0]


def _tiles(
    queries: Tensor, table: Tensor, cells: Sequence[Cells]
) -> Iterator[tuple[slice, Tensor]]:
    """Yield rows and some of their scores, which may be overwritten."""
    b = len(queries)
    n = len(table)
    height = _even(b, max(MIN_ROWS, TILE // n))
    width = min(n, TILE // height)
    buffer = _buffer(queries, height * width)

    starts = torch.arange(0, b + height, height, device=queries.device)
    cuts = [torch.searchsorted(each.rows, starts).tolist() for each in cells]
    for number, start in enumerate(range(0, b, height)):
        query = queries[start : start + height]
        rows = slice(start, start + len(query))
        inside = []
        for each, cut in zip(cells, cuts, strict=True):
            if cut[number] < cut[number + 1]:
                row, column, value = (part[cut[number] : cut[number + 1]] for part in each)
                inside.append(Cells(row - start, column, value))

        for first in range(0, n, width):
            check_deadline()
            vectors = table[first : first + width]
            scores = buffer[: len(query) * len(vectors)].view(len(query), -1)
            multiply(query, vectors, out=scores)
            for each in inside:
                _add(each if width == n else _within(each, first, len(vectors)), scores)
            yield rows, scores


def _even(total: int, longest: int) -> int:
    """Return how long equal parts are that are as few as possible, none above ``longest``.

    >>> _even(960, 104), _even(5, 104), _even(0, 104)
    (96, 5, 1)
    """
    parts = max(1, -(-total // longest))
    return max(1, -(-total // parts))


def _buffer(like: Tensor, size: int) -> Tensor:
    """Return memory for scores, the same for every call: fresh memory is mapped page by page."""
    buffer: Tensor | None = getattr(_kept, "buffer", None)
    if buffer is None or len(buffer) < size or buffer.dtype != like.dtype:
        with torch.inference_mode(False):  # it may be used outside
            buffer = like.new_empty(max(size, TILE))
        _kept.buffer = buffer
    return buffer


def _within(cells: Cells, first: int, width: int) -> Cells:
    """Return the cells of some columns, counted from the first."""
    columns = cells.columns - first
    kept = (columns >= 0) & (columns < width)
    return Cells(cells.rows[kept], columns[kept], cells.values[kept])


def _add(cells: Cells, scores: Tensor) -> None:
    """Add the values of cells to a tile of scores."""
    flat = cells.rows * scores.shape[1] + cells.columns
    scores.view(-1).index_add_(0, flat, cells.values)

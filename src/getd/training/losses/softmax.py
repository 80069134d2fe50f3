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
import threading
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

LEAST_ROWS = 192  # questions in a tile: with fewer, matrix products are slow
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

    >>> tile_shape(384, 12_000, room=800_000)          # all candidates of 192 questions, twice
    TileShape(rows=192, columns=12000)
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
    """Where a loss leaves its gradients; what is there before is overwritten."""

    query: Tensor  # (b, d)
    table: Tensor  # (n, d)


def softmax_gradients(
    query: Tensor,
    table: Tensor,
    target: Tensor | tuple[Tensor, Tensor],
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
        ``(b,)``, the right answer of each; or rows and columns of all right answers, which share the weight alike.
    left_out
        Rows (ascending) and columns of the candidates that take no part, each pair once; the target must not be among
        them.
    smoothing
        Weight that goes to all candidates that take part, alike; the rest stays on the target.

    Notes
    -----
    Scores are exponentiated as they are, and only where a sum goes wrong (as it does beyond 69) all is done again with
    the largest score of each question taken off.

    Examples
    --------
    >>> one, nothing = torch.tensor([[1.0]]), (torch.tensor([], dtype=torch.long),) * 2
    >>> into = Gradients(torch.empty(1, 1), torch.empty(4, 1))
    >>> softmax_gradients(one, torch.zeros(4, 1), torch.tensor([2]), nothing, 0, 1, into).exp()  # chance: 1 in 4
    tensor(4.)
    >>> into.table.flatten()
    tensor([ 0.2500,  0.2500, -0.7500,  0.2500])
    """
    shape = tile_shape(
        len(query), len(table), None if query.device.type == "cpu" else ACCELERATOR_ROOM
    )
    blocks = _cut(query, table, left_out, shape, into)
    buffer = _buffer(query, shape.rows * shape.columns)
    sums = _all_gradients(blocks, buffer, weight)
    log_sums = sums.log()
    if not torch.linalg.vector_norm(log_sums, torch.inf).item() < LOG_SAFE:  # NaN comes here too
        blocks = [block._replace(shift=_largest(block, buffer)) for block in blocks]
        sums = _all_gradients(blocks, buffer, weight)
        log_sums = sums.log() + torch.cat(
            [block.shift for block in blocks if block.shift is not None]
        )

    into.query.div_(sums)
    answers = _subtract_answers(query, table, target, weight * (1 - smoothing), into)
    loss = log_sums.sum() - (1 - smoothing) * (query * answers).sum()
    if smoothing:
        loss = loss - _smooth(query, table, left_out, smoothing, weight, into)
    return weight * loss


def _subtract_answers(
    query: Tensor,
    table: Tensor,
    target: Tensor | tuple[Tensor, Tensor],
    weight: float,
    into: Gradients,
) -> Tensor:
    """The (mean) answer of each question ``(b, d)``; ``weight`` times the gradients of its score are subtracted."""
    if isinstance(target, Tensor):
        answers = table[target]
        into.table.index_add_(0, target, query, alpha=-weight)
    else:
        rows, columns = target
        share = torch.bincount(rows, minlength=len(query)).to(query.dtype).reciprocal_()[rows, None]
        answers = torch.zeros_like(query).index_add_(0, rows, table[columns].mul_(share))
        into.table.index_add_(0, columns, query[rows].mul_(share), alpha=-weight)
    into.query.sub_(answers, alpha=weight)
    return answers


class _Tile(NamedTuple):
    """Some candidates, and which of their scores take no part, as indices of the flattened tile."""

    vectors: Tensor  # (m, d)
    grad: Tensor  # (m, d)
    left_out: Tensor


class _Block(NamedTuple):
    """Some questions and all their candidates."""

    query: Tensor  # (b, d)
    grad: Tensor  # (b, d)
    tiles: list[_Tile]
    shift: Tensor | None = None  # (b, 1), taken off the scores


def _cut(
    query: Tensor, table: Tensor, left_out: tuple[Tensor, Tensor], shape: TileShape, into: Gradients
) -> list[_Block]:
    rows, columns = left_out
    n, flat = len(table), torch.add(columns, rows, alpha=len(table))
    if shape == (len(query), n):
        return [_Block(query, into.query, [_Tile(table, into.table, flat)])]
    starts = list(range(0, len(query), shape.rows))
    ends = _ends(rows, [*starts, len(query)])
    blocks = []
    parts = zip(torch.split(query, shape.rows), torch.split(into.query, shape.rows), strict=True)
    for number, (part, grad) in enumerate(parts):
        start, here = starts[number], slice(ends[number], ends[number + 1])
        if shape.columns >= n:
            tiles = [_Tile(table, into.table, flat[here] - start * n)]
        else:
            tiles = _cut_columns(
                table, into.table, rows[here] - start, columns[here], shape.columns
            )
        blocks.append(_Block(part, grad, tiles))
    return blocks


def _cut_columns(
    table: Tensor, table_grad: Tensor, rows: Tensor, columns: Tensor, width: int
) -> list[_Tile]:
    columns, order = torch.sort(columns, stable=True)
    starts = list(range(0, len(table), width))
    ends = _ends(columns, [*starts, len(table)])
    tiles = []
    parts = zip(torch.split(table, width), torch.split(table_grad, width), strict=True)
    for number, (vectors, grad) in enumerate(parts):
        here = slice(ends[number], ends[number + 1])
        tiles.append(
            _Tile(vectors, grad, rows[order[here]] * len(vectors) + columns[here] - starts[number])
        )
    return tiles


def _ends(ascending: Tensor, values: list[int]) -> list[int]:
    """Where each of these values would stand."""
    found: list[int] = torch.searchsorted(
        ascending, torch.tensor(values, device=ascending.device)
    ).tolist()
    return found


_rooms = threading.local()


def _buffer(like: Tensor, size: int) -> Tensor:
    """Room for scores, the same for every call: what is allocated anew is mapped anew, page by page."""
    rooms: dict[tuple[torch.device, torch.dtype], Tensor] = vars(_rooms).setdefault("rooms", {})
    key = like.device, like.dtype
    if key not in rooms or len(rooms[key]) < size:
        rooms[key] = like.new_empty(size)
    return rooms[key]


def _all_gradients(blocks: list[_Block], buffer: Tensor, weight: float) -> Tensor:
    """The sums of exponentials of all questions, ``(b, 1)``, and the gradients; that by query is yet to be divided."""
    sums = [_gradients(block, buffer, weight, number == 0) for number, block in enumerate(blocks)]
    return sums[0] if len(sums) == 1 else torch.cat(sums)


def _gradients(block: _Block, buffer: Tensor, weight: float, is_first: bool) -> Tensor:
    """The same for one block; the first overwrites the gradient of the table, the others add to it."""
    sums: Tensor | None = None
    for part in block.tiles:
        tile = _exponentials(block, part, buffer)
        sums = (
            tile.sum(dim=1, keepdim=True)
            if sums is None
            else sums.add_(tile.sum(dim=1, keepdim=True))
        )
    assert sums is not None
    scaled = block.query / sums
    for number, part in enumerate(block.tiles):
        if len(block.tiles) > 1:
            tile = _exponentials(block, part, buffer)
        torch.addmm(
            block.grad, tile, part.vectors, beta=min(number, 1), alpha=weight, out=block.grad
        )
        torch.addmm(part.grad, tile.t(), scaled, beta=1 - is_first, alpha=weight, out=part.grad)
    return sums


def _exponentials(block: _Block, part: _Tile, buffer: Tensor) -> Tensor:
    scores = _scores(block, part, buffer)
    if block.shift is not None:
        scores.sub_(block.shift)
    scores.exp_()
    buffer.index_fill_(0, part.left_out, 0)
    return scores


def _largest(block: _Block, buffer: Tensor) -> Tensor:
    """The largest score of each question, ``(b, 1)``."""
    largest = torch.full_like(block.query[:, :1], -torch.inf)
    for part in block.tiles:
        scores = _scores(block, part, buffer)
        buffer.index_fill_(0, part.left_out, -torch.inf)
        torch.maximum(largest, scores.amax(dim=1, keepdim=True), out=largest)
    return largest


def _scores(block: _Block, part: _Tile, buffer: Tensor) -> Tensor:
    """The scores of a tile, ``(b, m)``, at the start of the buffer."""
    scores = torch.as_strided(buffer, (len(block.query), len(part.vectors)), (len(part.vectors), 1))
    return torch.mm(block.query, part.vectors.t(), out=scores)


def _smooth(
    query: Tensor,
    table: Tensor,
    left_out: tuple[Tensor, Tensor],
    smoothing: float,
    weight: float,
    into: Gradients,
) -> Tensor:
    """``smoothing`` times the mean score of those that take part, summed over questions; its gradients subtracted."""
    rows, columns = left_out
    share = smoothing / (
        len(table) - torch.bincount(rows, minlength=len(query))[:, None].to(query.dtype)
    )  # (b, 1)
    vectors = table.sum(dim=0).repeat(len(query), 1).index_add_(0, rows, table[columns], alpha=-1)
    mean, shared = share * vectors, share * query  # (b, d)
    into.query.sub_(mean, alpha=weight)
    into.table.sub_(shared.sum(dim=0), alpha=weight)
    into.table.index_add_(0, columns, shared[rows], alpha=weight)
    return (query * mean).sum()


def softmax_loss(
    scores: Tensor, target: Tensor, left_out: tuple[Tensor, Tensor], smoothing: float
) -> Tensor:
    """The mean of the same loss from scores ``(b, m)`` that are there already, for autograd.

    >>> nothing = torch.tensor([], dtype=torch.long)
    >>> softmax_loss(torch.zeros(2, 4), torch.tensor([1, 3]), (nothing, nothing), 0.0).exp()
    tensor(4.)
    """
    answers = scores.gather(1, target[:, None]).squeeze(1)
    loss = (
        scores.index_put(left_out, scores.new_tensor(-torch.inf)).logsumexp(dim=1)
        - (1 - smoothing) * answers
    )
    if smoothing:
        taking_part = torch.ones_like(scores).index_put_(left_out, scores.new_tensor(0.0))
        loss = loss - smoothing * (scores * taking_part).sum(dim=1) / taking_part.sum(dim=1)
    return loss.mean()


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

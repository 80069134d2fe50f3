r"""The paper's loss (eq. 8 and 9), fused with the scoring: a softmax over all candidates.

.. math::
    -\phi_t + \log \sum_{c \in C} e^{\phi_c}, \qquad
    C = \{t\} \cup \{c : c \text{ makes no training fact true}\}

Scores are dot products. They are never kept: value and gradients come from one pass over tiles of
scores that fit into the caches. A tile is scored, exponentiated, filtered and multiplied into both
gradients before the next one overwrites it; the division by the sum is folded into the queries.
Where a tile cannot hold all candidates of enough questions, they are cut too, and scored twice.

With ``precision = "bf16"`` scores, exponentials and the factors of all products have 8 bits; the
answers' scores, the sums, the loss and the gradients that are kept have 24.

:class:`LossSum` adds such losses to those of autograd; :func:`softmax_gradients` is its kernel.
"""

import os
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from getd.runs.config import TrainSettings
from getd.training.losses.base import Pairs, Target, Weight

DType = torch.dtype
Kernel = Callable[..., Tensor]  # as :func:`softmax_gradients`
MIN_ROWS = 192  # questions in a tile with all candidates: with fewer, matrix products are slow
MAX_ROWS = 256  # questions in a tile that does not hold all candidates
ACCELERATOR_BUDGET = 1 << 26  # scores in a tile where no cache limits it
MAX_LOG_SUM = 69  # float32 sums of exponentials between e^-69 and e^69 are exact enough


class LossSum:
    """A sum of losses, some of which bring the gradients of their last step along."""

    def __init__(
        self, buffers: dict[Tensor, Tensor], settings: TrainSettings, kernel: Kernel | None = None
    ) -> None:
        self._kernel = kernel or softmax_gradients
        self._buffers = buffers  # for the gradients of tables, kept from step to step
        self._smoothing = settings.label_smoothing
        self._in_bf16 = settings.precision == "bf16"
        self._values: list[Tensor] = []
        self._outputs: list[Tensor] = []  # where autograd starts
        self._grads: list[Tensor | None] = []  # the gradients there; None: 1

    def rounding(self, device: torch.device) -> torch.autocast:
        """Let products round their factors and results, where bf16 was chosen."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self._in_bf16)

    def add(self, loss: Tensor) -> None:
        """Add a loss of autograd."""
        self._values.append(loss.detach())
        self._outputs.append(loss)
        self._grads.append(None)

    def add_softmax(
        self, query: Tensor, table: Tensor, target: Target, left_out: Pairs, weight: Weight
    ) -> None:
        """Add what the kernel computes; a table occurs once in a sum."""
        if table.is_leaf:
            if table not in self._buffers:
                self._buffers[table] = torch.empty_like(table)
            assert table.grad is None
            table_grad = table.grad = self._buffers[table]
        else:
            table_grad = torch.empty_like(table)
            self._outputs.append(table)
            self._grads.append(table_grad)

        query = query.to(table.dtype)
        into = Gradients(torch.empty_like(query), table_grad)
        with torch.no_grad():
            arguments = (query, table, target, left_out, self._smoothing, weight, into)
            value = self._kernel(*arguments, self._in_bf16)
        self._values.append(value)
        self._outputs.append(query)
        self._grads.append(into.query)

    def backward(self) -> float:
        """Leave all gradients in the parameters and return the sum."""
        torch.autograd.backward(self._outputs, self._grads)
        return torch.stack(self._values).sum().item()


class Gradients(NamedTuple):
    """Tensors that a loss overwrites with its gradients."""

    query: Tensor  # (b, d)
    table: Tensor  # (n, d)


def softmax_gradients(
    query: Tensor,
    table: Tensor,
    target: Target,
    left_out: Pairs,
    smoothing: float,
    weight: Weight,
    into: Gradients,
    in_bf16: bool = False,
) -> Tensor:
    """Compute the weighted sum of the losses of questions, and leave its gradients in ``into``.

    ``query`` ``(b, d)`` has a vector per question, ``table`` ``(n, d)`` one per candidate. Several
    answers share a question's weight. ``left_out`` are candidates that take no part, each once and
    none an answer. ``smoothing`` is the weight that is spread over all others.

    Scores are exponentiated as they are. Only if a sum leaves the safe range, everything is
    computed again in full precision, with the largest score of each question taken off.

    >>> one, nothing = torch.tensor([[1.0]]), (torch.tensor([], dtype=torch.long),) * 2
    >>> into = Gradients(torch.empty(1, 1), torch.empty(4, 1))
    >>> loss = softmax_gradients(one, torch.zeros(4, 1), torch.tensor([2]), nothing, 0, 1, into)
    >>> loss.exp(), into.table.flatten()  # chance: 1 in 4
    (tensor(4.), tensor([ 0.2500,  0.2500, -0.7500,  0.2500]))
    """
    # Gradients of the table are linear in the queries: there the weights of questions go.
    weights: Weight = 1.0
    if isinstance(weight, Tensor):
        weights = weight.to(query.dtype)
        weight = 1.0
    weighted = query * weights

    # The gradients of the log-sums; NaN fails the comparison too.
    operands = (query, weighted, table, left_out, into)
    blocks, buffer = cut_into_tiles(*operands, torch.bfloat16 if in_bf16 else query.dtype)
    sums = all_gradients(blocks, buffer, weight)
    log_sums = sums.log()
    if not torch.linalg.vector_norm(log_sums, torch.inf).item() < MAX_LOG_SUM:
        blocks, buffer = cut_into_tiles(*operands, query.dtype)
        shifts = [largest_scores(block, buffer) for block in blocks]
        blocks = [b._replace(shift=shift) for b, shift in zip(blocks, shifts, strict=True)]
        sums = all_gradients(blocks, buffer, weight)
        log_sums = sums.log() + torch.cat(shifts)
    into.query.div_(sums)

    # The score of the answer, or the mean score of several.
    if isinstance(target, Tensor):
        answers = table[target]  # (b, d)
        into.table.index_add_(0, target, weighted, alpha=-weight * (1 - smoothing))
    else:
        rows, columns = target
        counts = torch.bincount(rows, minlength=len(query)).to(query.dtype)
        share = counts.reciprocal_()[rows, None]
        answers = torch.zeros_like(query).index_add_(0, rows, table[columns].mul_(share))
        shared = weighted[rows].mul_(share)
        into.table.index_add_(0, columns, shared, alpha=-weight * (1 - smoothing))
    into.query.sub_(answers, alpha=weight * (1 - smoothing))
    loss = (log_sums * weights).sum() - (1 - smoothing) * (weighted * answers).sum()

    # The mean score of all candidates that take part.
    if smoothing:
        rows, columns = left_out
        n_left_out = torch.bincount(rows, minlength=len(query))[:, None].to(query.dtype)
        share = smoothing / (len(table) - n_left_out)  # (b, 1)
        total = table.sum(dim=0).repeat(len(query), 1)
        mean = share * total.index_add_(0, rows, table[columns], alpha=-1)  # (b, d)
        shared = share * weighted
        into.query.sub_(mean, alpha=weight)
        into.table.sub_(shared.sum(dim=0), alpha=weight)
        into.table.index_add_(0, columns, shared[rows], alpha=weight)
        loss = loss - (weighted * mean).sum()
    into.query.mul_(weights)
    return weight * loss


class TileShape(NamedTuple):
    """How many questions and candidates a tile of scores holds."""

    rows: int
    columns: int


def tile_shape(n_questions: int, n_candidates: int, budget: int | None = None) -> TileShape:
    """Choose tiles of about ``budget`` scores (by default: what the caches hold).

    All candidates go into one tile unless that exceeds the caches by far: scoring twice costs
    more. Measured with 1,000 to 1,000,000 candidates.

    >>> tile_shape(384, 12_000, budget=800_000)  # all candidates of 192 questions, twice
    TileShape(rows=192, columns=12000)
    >>> tile_shape(384, 1_000_000, budget=800_000)  # too many candidates: they are cut
    TileShape(rows=256, columns=3125)
    """
    # A quarter of the second-level caches of all cores in use is left for everything else.
    budget = budget or torch.get_num_threads() * _cache_bytes() * 3 // 16
    if n_candidates * 8 <= budget:
        parts = -(-n_questions // max(MIN_ROWS, budget // max(n_candidates, 1)))
        return TileShape(-(-n_questions // max(parts, 1)), n_candidates)
    rows = min(n_questions, MAX_ROWS)
    return TileShape(rows, max(1, min(n_candidates, budget // rows)))


@cache
def _cache_bytes() -> int:
    """The bytes of one core's second-level cache; 1 MiB where the system does not say."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    return size if size > 0 else 1 << 20


_buffers = threading.local()  # a buffer for each device and type of numbers


def _buffer(like: Tensor, size: int) -> Tensor:
    """A buffer for scores, the same for every call: fresh memory would be mapped page by page."""
    key = f"{like.device} {like.dtype}"
    buffer: Tensor | None = getattr(_buffers, key, None)
    if buffer is None or len(buffer) < size:
        buffer = like.new_empty(size)
        setattr(_buffers, key, buffer)
    return buffer


class _Tile(NamedTuple):
    """Candidates, and which of their scores take no part."""

    vectors: Tensor  # (m, d)
    grad: Tensor  # (m, d)
    left_out: Tensor  # indices into the flattened scores (b, m)


class _Block(NamedTuple):
    """Questions with all their candidates."""

    query: Tensor  # (b, d)
    weighted: Tensor  # (b, d): queries times the weights of their questions
    grad: Tensor  # (b, d)
    tiles: list[_Tile]
    shift: Tensor | None = None  # (b, 1), taken off the scores
    divide: Callable[[Tensor, Tensor], Tensor] = torch.div  # ``weighted`` by the sums


def cut_into_tiles(
    query: Tensor, weighted: Tensor, table: Tensor, left_out: Pairs, into: Gradients, dtype: DType
) -> tuple[list[_Block], Tensor]:
    """Cut questions, and candidates where needed, into tiles; with a buffer for their scores."""
    budget = None if query.device.type == "cpu" else ACCELERATOR_BUDGET
    shape = tile_shape(len(query), len(table), budget)
    query = query.to(dtype)
    table = table.to(dtype)
    buffer = _buffer(query, shape.rows * shape.columns)

    rows, columns = left_out
    n = len(table)
    flat = torch.add(columns, rows, alpha=n)
    if shape == (len(query), n):
        return [_Block(query, weighted, into.query, [_Tile(table, into.table, flat)])], buffer

    blocks = []
    for start, part, grad, pairs in _parts(query, into.query, shape.rows, rows):
        tiles = [_Tile(table, into.table, flat[pairs] - start * n)]
        if shape.columns < n:
            inside = (rows[pairs] - start, columns[pairs])
            tiles = _cut_candidates(table, into.table, inside, shape.columns)
        blocks.append(_Block(part, weighted[start : start + len(part)], grad, tiles))
    return blocks, buffer


def _cut_candidates(table: Tensor, table_grad: Tensor, left_out: Pairs, width: int) -> list[_Tile]:
    """Cut the candidates of one block."""
    columns, order = torch.sort(left_out[1], stable=True)
    rows = left_out[0][order]
    tiles = []
    for start, vectors, grad, pairs in _parts(table, table_grad, width, columns):
        flat = rows[pairs] * len(vectors) + columns[pairs] - start
        tiles.append(_Tile(vectors, grad, flat))
    return tiles


def _parts(
    vectors: Tensor, grads: Tensor, size: int, ascending: Tensor
) -> Iterator[tuple[int, Tensor, Tensor, slice]]:
    """Cut vectors and gradients; with each part its start, and which ascending ids lie in it."""
    starts = range(0, len(vectors), size)
    bounds = torch.tensor([*starts, len(vectors)], device=ascending.device)
    ends = torch.searchsorted(ascending, bounds).tolist()
    slices = [slice(*pair) for pair in pairwise(ends)]
    parts = (torch.split(vectors, size), torch.split(grads, size))
    return zip(starts, *parts, slices, strict=True)


def all_gradients(blocks: list[_Block], buffer: Tensor, weight: float) -> Tensor:
    """The sums of exponentials of all questions, ``(b, 1)``; leaves the gradients of the log-sums.

    That of the queries is yet to be divided."""
    sums = [_gradients(block, buffer, weight, number == 0) for number, block in enumerate(blocks)]
    return sums[0] if len(sums) == 1 else torch.cat(sums)


def _gradients(block: _Block, buffer: Tensor, weight: float, is_first: bool) -> Tensor:
    """The same for one block; the first overwrites the gradient of the table, others add to it."""
    sums: Tensor | None = None
    for tile in block.tiles:
        exponentials = _exponentials(block, tile, buffer)
        tile_sums = exponentials.sum(dim=1, keepdim=True, dtype=block.grad.dtype)
        sums = tile_sums if sums is None else sums.add_(tile_sums)
    assert sums is not None

    scaled = block.divide(block.weighted, sums).to(block.query.dtype)
    for number, tile in enumerate(block.tiles):
        if len(block.tiles) > 1:  # by now the buffer holds the last tile
            exponentials = _exponentials(block, tile, buffer)
        _add_product(block.grad, exponentials, tile.vectors, weight, number > 0)
        _add_product(tile.grad, exponentials.t(), scaled, weight, not is_first)
    return sums


def _add_product(into: Tensor, left: Tensor, right: Tensor, weight: float, is_added: bool) -> None:
    """Add a weighted product of matrices to a gradient, or overwrite it."""
    if left.dtype == into.dtype:
        into.addmm_(left, right, beta=int(is_added), alpha=weight)
    elif is_added:
        into.add_(left @ right, alpha=weight)
    else:
        into.copy_(left @ right).mul_(weight)


def _exponentials(block: _Block, tile: _Tile, buffer: Tensor) -> Tensor:
    """The exponentials of the scores of a tile, ``(b, m)``, 0 for what takes no part."""
    scores = _scores(block, tile, buffer).exp_()
    buffer.index_fill_(0, tile.left_out, 0)
    return scores


def largest_scores(block: _Block, buffer: Tensor) -> Tensor:
    """The largest score of each question, ``(b, 1)``."""
    largest = torch.full_like(block.query[:, :1], -torch.inf)
    for tile in block.tiles:
        scores = _scores(block, tile, buffer)
        buffer.index_fill_(0, tile.left_out, -torch.inf)
        torch.maximum(largest, scores.amax(dim=1, keepdim=True), out=largest)
    return largest


def _scores(block: _Block, tile: _Tile, buffer: Tensor) -> Tensor:
    """The scores of a tile, ``(b, m)``, at the start of the buffer."""
    b, m = len(block.query), len(tile.vectors)
    scores = torch.as_strided(buffer, (b, m), (m, 1))
    torch.mm(block.query, tile.vectors.t(), out=scores)
    return scores if block.shift is None else scores.sub_(block.shift)

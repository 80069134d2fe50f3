r"""Filtered ranks of the questions of facts: scores are made, counted and dropped chunk by chunk.

Shapes: ``b`` questions in a block, ``m`` candidates in a span.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt, prod

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.choices import Ties
from getd.errors import check_choice
from getd.evaluation.precision import Settled, dot_product_of, multiply, rounded
from getd.evaluation.rank_scores import TIES, Level, Ranks, count_rivals, to_ranks
from getd.evaluation.rounding import bf16_rounding, product_rounding, score_rounding
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import Cells, DotProductModel, ScoringModel

CHUNK = 2**21  # scores held at a time: 8 MB, near the caches
MIN_ROWS = 16  # questions in a block; if all candidates would not fit, these are cut into spans
MAX_ROWS = 512  # keeps what a model makes of a block of questions small next to its scores


def rank_facts(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    *,
    ties: Ties = "realistic",
    chunk: int = CHUNK,
    precision: Settled = "fp32",
) -> Ranks:
    """Rank the entity at each position of facts among all entities but the other known answers.

    Candidates are level with the answer if rounding alone could put their scores apart
    (:mod:`~getd.evaluation.rounding`). Such ``ties`` get the mean of the ranks they share
    (``realistic``: a constant model earns chance), the first (``optimistic``) or the last
    (``pessimistic``). Raises :class:`NonFiniteScores` if a score is NaN or infinite.

    ``chunk`` is the number of scores held at a time. A :class:`DotProductModel` makes the queries
    of a block of questions once and multiplies them with slices of its table, into one buffer:
    memory beyond the table does not depend on the number of entities. In ``bf16`` these products
    are rounded, for which a table is copied.
    """
    check_choice("ties", ties, TIES)
    shape = facts.entities.shape
    counts = np.zeros((2, *shape))
    others = np.zeros(shape, dtype=np.int64)

    with model.scoring() as device:
        for position in range(facts.arity):
            slot = _Slot(model, facts, position, known, device, chunk, precision)
            _count_slot(slot, counts[:, :, position], others[:, position])
    return to_ranks(counts, model.n_entities - others, ties)


@dataclass(frozen=True, eq=False)
class _DotProductBlock:
    """Questions whose queries are multiplied with slices of the table, into the same memory."""

    query: Tensor
    table: Tensor  # rounded where scores are
    buffer: Tensor
    memory: Cells | None  # what is added to the products

    def score(self, start: int, stop: int) -> Tensor:
        """Score the candidates ``start .. stop - 1``: ``(b, m)``, valid until the next call."""
        vectors = self.table[start:stop]
        shape = (len(self.query), len(vectors))
        scores = multiply(self.query, vectors, self.buffer[: prod(shape)].view(shape))
        if self.memory is not None:
            rows, columns, values = self.memory
            inside = (columns >= start) & (columns < stop)
            cells = (rows[inside], columns[inside] - start)
            scores.index_put_(cells, values[inside], accumulate=True)
        return scores

    def rounding(self, answers: Tensor, scores: Tensor) -> Tensor:
        """Return how far rounding can put scores apart, ``(b, 1)``; the answers' are among them."""
        vectors = self.table[answers]
        rounding = product_rounding(self.query, vectors)
        if self.memory is not None:
            rounding = rounding + score_rounding(scores)
        if vectors.dtype == torch.bfloat16:
            rounding = rounding + bf16_rounding(self.query, vectors)
        return rounding


@dataclass(frozen=True, eq=False)
class _ModelBlock:
    """Questions whose candidates the model scores by their ids."""

    model: ScoringModel
    relation: Tensor
    given: Tensor
    position: int

    def score(self, start: int, stop: int) -> Tensor:
        candidates = None
        if stop - start < self.model.n_entities:
            candidates = torch.arange(start, stop, device=self.given.device)
        return self.model.score_candidates(self.relation, self.given, self.position, candidates)

    def rounding(self, answers: Tensor, scores: Tensor) -> Tensor:
        if not isinstance(self.model, DotProductModel):
            return score_rounding(scores)

        # The model adds something to a dot product: it has the rounding of both.
        query = self.model.query(self.relation, self.given, self.position)
        table = self.model.candidates(self.position)
        return product_rounding(query, table[answers]) + score_rounding(scores)


Block = _DotProductBlock | _ModelBlock
Span = tuple[int, int]  # the candidates start .. stop - 1


@dataclass(frozen=True, eq=False)
class _Slot:
    """The questions that open one slot of facts."""

    model: ScoringModel
    facts: Facts
    position: int
    known: KnownAnswers
    device: torch.device
    chunk: int
    precision: Settled

    @cached_property
    def _product(self) -> DotProductModel | None:
        return dot_product_of(self.model)

    @property
    def min_rows(self) -> int:
        """The rows of a block; spans of candidates are so short that as many fit.

        A tall block makes a better matrix product than a flat one, but is full only if there are
        few spans. The answers of each span fill about one block if ``rows * width = chunk`` and
        ``rows = n_questions * width / n_entities``.
        """
        if self._product is None:
            return MIN_ROWS
        balanced = isqrt(self.chunk * len(self.facts) // self.model.n_entities)
        return min(max(balanced, MIN_ROWS), MAX_ROWS)

    @cached_property
    def _table(self) -> tuple[Tensor, Tensor]:
        """The vectors of the candidates of a dot product, and memory for scores."""
        assert self._product is not None
        table = self._product.candidates(self.position)
        buffer = table.new_empty(min(self.chunk, MAX_ROWS * len(table)))
        return rounded(table, self.precision), buffer

    def block(self, relation: Tensor, entities: Tensor) -> Block:
        """Return questions whose answers are hidden."""
        if self._product is None:
            return _ModelBlock(self.model, relation, entities, self.position)

        query = self._product.query(relation, entities, self.position)
        memory = self.model.memory_cells(relation, entities, self.position)
        if memory is None:
            return _DotProductBlock(query, *self._table, None)
        scale, cells = memory
        cells = cells._replace(values=cells.values.to(query))
        return _DotProductBlock(query * scale, *self._table, cells)


def _count_slot(slot: _Slot, counts: Floats, others: Ids) -> None:
    """Fill in the counts of :func:`count_rivals`, and how many other known answers there are."""
    n_entities = slot.model.n_entities
    width = max(1, min(n_entities, slot.chunk // slot.min_rows))
    max_rows = max(1, min(slot.chunk // width, MAX_ROWS))
    cuts = _cuts(n_entities, width)
    spans = list(pairwise(cuts.tolist()))

    answers = slot.facts.entities[:, slot.position]
    home = cuts.searchsorted(answers, side="right") - 1
    for number in np.unique(home).tolist():
        rows = np.flatnonzero(home == number)
        for block in np.split(rows, _cuts(len(rows), max_rows)[1:-1]):
            counts[:, block], others[block] = _count_block(slot, block, spans, spans[number])


def _cuts(total: int, longest: int) -> Ids:
    """Cut ``0 .. total`` into as few parts as possible, about equal, none longer than ``longest``.

    >>> _cuts(10, 4).tolist()
    [0, 3, 6, 10]
    """
    parts = -(-total // longest)
    return np.arange(parts + 1) * total // parts


def _count_block(slot: _Slot, rows: Ids, spans: list[Span], home: Span) -> tuple[Floats, Ids]:
    """Sum the counts of :func:`count_rivals` over all spans; also count the answers left out.

    All answers of a block lie in the span ``home``, which is scored first. So every score is
    computed once, and the answer's is one of the scores it is compared with.
    """
    position = slot.position
    facts = slot.facts.take(rows)
    known = slot.known.lookup(facts.relation, facts.entities, position)
    others = np.stack(known.others(facts.entities[:, position]))
    row, value = torch.tensor(others, device=slot.device)

    relation, entities = facts.to_tensors(slot.device)
    answers = entities[:, position].clone()
    if not slot.model.reads_answers:
        entities[:, position] = 0
    block = slot.block(relation, entities)
    counts = torch.zeros(2, len(rows), dtype=torch.float64, device=slot.device)
    for start, stop in sorted(spans, key=lambda span: span != home):
        scores = block.score(start, stop)
        if start == home[0]:
            target = scores.gather(1, (answers - start)[:, None])
            rounding = block.rounding(answers, scores)
            level = Level(target - rounding, target + rounding)
        in_span = (value >= start) & (value < stop)
        counts += count_rivals(scores, level, row[in_span], value[in_span] - start)
    return counts.cpu().numpy(), np.bincount(others[0], minlength=len(rows))

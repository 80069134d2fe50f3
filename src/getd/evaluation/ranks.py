r"""Filtered ranks of the questions of facts: scores are made, counted and dropped chunk by chunk.

Shapes: ``b`` questions in a block, ``m`` candidates in a span.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import numpy as np
import torch
from torch import Tensor

from getd.arrays import Floats, Ids
from getd.choices import Ties
from getd.evaluation.rank_scores import Level, Ranks, check_ties, count_rivals, to_ranks
from getd.evaluation.rounding import product_rounding, score_rounding
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ScoringModel

CHUNK = 2**21  # scores held at a time: 8 MB, near the caches
MIN_ROWS = 16  # questions in a block; if all candidates would not fit, these are cut into spans
MAX_ROWS = 512  # keeps what a model makes of a block of questions small next to its scores


@dataclass(frozen=True)
class BlockScorer:
    """Scores a block of questions, and says how far rounding can put the scores apart."""

    # The scores (b, m) of the candidates start .. stop - 1, valid until the next call.
    score: Callable[[int, int], Tensor]
    # The rounding (b, 1), from the answers (b,) and scores (b, m) that theirs are among.
    rounding: Callable[[Tensor, Tensor], Tensor] = lambda answers, scores: score_rounding(scores)

    def level(self, answers: Tensor, scores: Tensor, start: int) -> Level:
        """Return the scores level with those of the answers, which lie in the span at ``start``."""
        target = scores.gather(1, (answers - start)[:, None])
        rounding = self.rounding(answers, scores)
        return Level(target - rounding, target + rounding)


def rank_facts(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    *,
    ties: Ties = "realistic",
    chunk: int = CHUNK,
) -> Ranks:
    """Rank the entity at each position of facts among all entities but the other known answers.

    Candidates are level with the answer if rounding alone could put their scores apart
    (:mod:`~getd.evaluation.rounding`). Such ``ties`` get the mean of the ranks they share
    (``realistic``: a constant model earns chance), the first (``optimistic``) or the last
    (``pessimistic``). Raises :class:`NonFiniteScores` if a score is NaN or infinite.

    ``chunk`` is the number of scores held at a time. A :class:`DotProductModel` makes the queries
    of a block of questions once and multiplies them with slices of its table, into one buffer:
    memory beyond the table does not depend on the number of entities.
    """
    ranks = []
    with model.scoring() as device:
        relation, entities = facts.to_tensors(device)
        min_rows = MIN_ROWS
        if model.is_dot_product:
            min_rows = _balanced_rows(len(facts), model.n_entities, chunk)

        for position in range(facts.arity):
            scorer = _position_scorer(model, relation, entities, position, chunk)
            slot = _Slot(scorer, model.n_entities, facts, position, known, device, min_rows)
            ranks.append(_rank_slot(slot, ties, chunk))
    return Ranks(
        np.column_stack([column.rank for column in ranks]),
        np.column_stack([column.candidates for column in ranks]),
    )


def rank_relations(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    *,
    ties: Ties = "realistic",
    chunk: int = CHUNK,
) -> Ranks:
    """Rank the relation of each fact among all relations, as :func:`rank_facts` ranks entities."""
    with model.scoring() as device:
        _, entities = facts.to_tensors(device)

        def scorer(rows: Tensor) -> BlockScorer:
            scores = model.score_relations(entities[rows])
            return BlockScorer(lambda start, stop: scores[:, start:stop])

        slot = _Slot(scorer, model.n_relations, facts, None, known, device, MIN_ROWS)
        ranks = _rank_slot(slot, ties, chunk)
    return Ranks(ranks.rank[:, None], ranks.candidates[:, None])


@dataclass(frozen=True, eq=False)
class _Slot:
    """The questions that open one slot of facts."""

    scorer: Callable[[Tensor], BlockScorer]  # for the questions of these rows (b,)
    n_candidates: int
    facts: Facts
    position: int | None  # None: the relation
    known: KnownAnswers
    device: torch.device
    min_rows: int  # of a block; spans are so short that as many fit

    @property
    def answers(self) -> Ids:
        if self.position is None:
            return self.facts.relation
        return self.facts.entities[:, self.position]

    def other_answers(self, rows: Ids) -> tuple[Ids, Ids]:
        batch = self.facts.take(rows)
        known = self.known.lookup(batch.relation, batch.entities, self.position)
        return known.others(self.answers[rows])


def _position_scorer(
    model: ScoringModel, relation: Tensor, entities: Tensor, position: int, chunk: int
) -> Callable[[Tensor], BlockScorer]:
    """Return what scores blocks of questions with one position open."""
    scorer = _any_scorer(model, position)
    if isinstance(model, DotProductModel) and model.is_dot_product:
        scorer = _dot_product_scorer(model, position, chunk)
    open_column = torch.tensor(position, device=entities.device)

    def score_rows(rows: Tensor) -> BlockScorer:
        given = entities[rows].index_fill_(1, open_column, 0)  # hides the answer
        return scorer(relation[rows], given)

    return score_rows


def _dot_product_scorer(
    model: DotProductModel, position: int, chunk: int
) -> Callable[[Tensor, Tensor], BlockScorer]:
    """Queries are made once, and multiplied with slices of the table, all into the same memory."""
    table = model.candidates(position)
    buffer = table.new_empty(min(chunk, MAX_ROWS * len(table)))

    def scorer(relation: Tensor, given: Tensor) -> BlockScorer:
        query = model.query(relation, given, position)
        b = len(query)

        def score(start: int, stop: int) -> Tensor:
            scores = buffer[: b * (stop - start)].view(b, stop - start)
            return torch.mm(query, table[start:stop].T, out=scores)

        return BlockScorer(score, lambda answers, scores: product_rounding(query, table[answers]))

    return scorer


def _any_scorer(model: ScoringModel, position: int) -> Callable[[Tensor, Tensor], BlockScorer]:
    """The model scores spans of candidates, given by their ids."""

    def scorer(relation: Tensor, given: Tensor) -> BlockScorer:
        def score(start: int, stop: int) -> Tensor:
            everything = stop - start == model.n_entities
            candidates = None if everything else torch.arange(start, stop, device=given.device)
            return model.score_candidates(relation, given, position, candidates)

        if not isinstance(model, DotProductModel):
            return BlockScorer(score)

        # The model adds something to a dot product: it has the rounding of both.
        query = model.query(relation, given, position)
        table = model.candidates(position)

        def rounding(answers: Tensor, scores: Tensor) -> Tensor:
            return product_rounding(query, table[answers]) + score_rounding(scores)

        return BlockScorer(score, rounding)

    return scorer


def _balanced_rows(n_questions: int, n_candidates: int, chunk: int) -> int:
    """Return the rows of a block for which each span's answers fill about one block.

    A tall block makes a better matrix product than a flat one, but is full only if there are few
    spans: ``rows * width = chunk`` and ``rows = n_questions * width / n_candidates``.
    """
    return min(max(isqrt(chunk * n_questions // n_candidates), MIN_ROWS), MAX_ROWS)


def _rank_slot(slot: _Slot, ties: Ties, chunk: int) -> Ranks:
    """Rank the answers block by block; all answers of a block lie in one span of candidates."""
    check_ties(ties)
    counts = np.zeros((2, len(slot.facts)))
    others = np.zeros(len(slot.facts), dtype=np.int64)

    width = max(1, min(slot.n_candidates, chunk // slot.min_rows))
    spans = _cuts(slot.n_candidates, width)
    max_rows = max(1, min(chunk // width, MAX_ROWS))
    home = np.searchsorted(spans, slot.answers, side="right") - 1
    for span in np.unique(home):
        rows = np.flatnonzero(home == span)
        for block in np.split(rows, _cuts(len(rows), max_rows)[1:-1]):
            counts[:, block], others[block] = _count_block(slot, block, spans, int(span))
    return to_ranks(counts, slot.n_candidates - others, ties)


def _cuts(total: int, longest: int) -> Ids:
    """Cut ``0 .. total`` into as few parts as possible, about equal, none longer than ``longest``.

    >>> _cuts(10, 4).tolist()
    [0, 3, 6, 10]
    """
    parts = -(-total // longest)
    return np.arange(parts + 1) * total // parts


def _count_block(slot: _Slot, rows: Ids, spans: Ids, home: int) -> tuple[Floats, Ids]:
    """Sum the counts of :func:`count_rivals` over all spans; also count the answers left out.

    All answers of a block lie in the span ``home``, which is scored first. So every score is
    computed once, and the answer's is one of the scores it is compared with.
    """
    # The other known answers, sorted by span.
    row, value = slot.other_answers(rows)
    others = np.bincount(row, minlength=len(rows))
    span_of = np.searchsorted(spans, value, side="right") - 1
    order = np.argsort(span_of, kind="stable")
    ends = np.searchsorted(span_of[order], np.arange(len(spans)))
    left_out = torch.tensor(np.stack([row, value])[:, order], device=slot.device)

    answers = torch.tensor(slot.answers[rows], device=slot.device)
    counts = torch.zeros(2, len(rows), dtype=torch.float64, device=slot.device)
    scorer = slot.scorer(torch.tensor(rows, device=slot.device))
    for span in sorted(range(len(spans) - 1), key=lambda number: number != home):
        start = int(spans[span])
        scores = scorer.score(start, int(spans[span + 1]))
        if span == home:
            level = scorer.level(answers, scores, start)
        span_rows, span_values = left_out[:, ends[span] : ends[span + 1]]
        counts += count_rivals(scores, level, span_rows, span_values - start)
    return counts.cpu().numpy(), others

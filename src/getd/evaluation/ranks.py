r"""The questions of facts to filtered ranks: scores are made, counted and forgotten chunk by chunk.

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
from getd.evaluation.rank_scores import (
    Level,
    Ranks,
    Ties,
    check_ties,
    count_rivals,
    to_ranks,
)
from getd.evaluation.rounding import product_rounding, score_rounding
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ScoringModel

CHUNK = 2**21  # scores held at a time: 8 MB, near the caches
LEAST_ROWS = 16  # questions scored together; where they would not fit with all candidates, candidates are cut instead
MOST_ROWS = (
    512  # so that what a model makes of the questions of a block stays small beside their scores
)


@dataclass(frozen=True)
class Scorer:
    """The scores of a block of questions, and how far rounding can put them apart."""

    score: Callable[
        [int, int], Tensor
    ]  # those (b, m) of the candidates start .. stop - 1, valid until the next call
    rounding: Callable[
        [Tensor, Tensor], Tensor
    ]  # of the answers (b,), and scores (b, m) with theirs among them

    def level(self, answers: Tensor, scores: Tensor, start: int) -> Level:
        """The scores that are level with the answers', all of which are among those of a span."""
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
    """Rank the entity at each position of each fact among all entities but the other known answers.

    Parameters
    ----------
    ties
        Candidates whose scores rounding alone could put apart from the answer's
        (:mod:`~getd.evaluation.rounding`): ``realistic`` gives the mean of the ranks they share (a constant model
        earns chance), ``optimistic`` the first, ``pessimistic`` the last.
    chunk
        How many scores are held at a time.

    Raises
    ------
    NonFiniteScores
        If a score is NaN or infinite.

    Notes
    -----
    A :class:`DotProductModel` makes the queries of a block of questions once and multiplies them with slices of its
    table, into one buffer: memory beyond the table does not depend on the number of entities.
    """
    with model.scoring() as device:
        relation = torch.tensor(facts.relation, device=device)
        entities = torch.tensor(facts.entities, device=device)
        rows = (
            _balanced_rows(len(facts), model.n_entities, chunk)
            if model.is_dot_product
            else LEAST_ROWS
        )

        def slot(position: int) -> _Slot:
            scorer = (
                _dot_product(model, position, chunk)
                if isinstance(model, DotProductModel) and model.is_dot_product
                else _any_model(model, position)
            )

            def ask(chosen: Tensor) -> Scorer:
                given = entities[chosen].index_fill_(
                    1, torch.tensor(position, device=device), 0
                )  # hide the answer
                return scorer(relation[chosen], given)

            return _Slot(ask, model.n_entities, facts, position, known, device, rows)

        return _join([_rank_slot(slot(position), ties, chunk) for position in range(facts.arity)])


def rank_relations(
    model: ScoringModel,
    facts: Facts,
    known: KnownAnswers,
    *,
    ties: Ties = "realistic",
    chunk: int = CHUNK,
) -> Ranks:
    """Rank the relation of each fact among all relations but the other known answers; see :func:`rank_facts`."""
    with model.scoring() as device:
        entities = torch.tensor(facts.entities, device=device)

        def ask(rows: Tensor) -> Scorer:
            scores = model.score_relations(entities[rows])
            return Scorer(lambda start, stop: scores[:, start:stop], _of_largest)

        return _join(
            [
                _rank_slot(
                    _Slot(ask, model.n_relations, facts, None, known, device, LEAST_ROWS),
                    ties,
                    chunk,
                )
            ]
        )


@dataclass(frozen=True, eq=False)
class _Slot:
    """The questions that open one slot of some facts."""

    ask: Callable[[Tensor], Scorer]  # rows of facts (b,) to the scores of their questions
    n_candidates: int
    facts: Facts
    position: int | None  # None: the relation
    known: KnownAnswers
    device: torch.device
    least_rows: int  # of a block; spans are made so short that they fit

    @property
    def answers(self) -> Ids:
        return (
            self.facts.relation if self.position is None else self.facts.entities[:, self.position]
        )

    def other_answers(self, rows: Ids) -> tuple[Ids, Ids]:
        known = self.known.lookup(
            self.facts.relation[rows], self.facts.entities[rows], self.position
        )
        return known.others(self.answers[rows])

    def scorer(self, rows: Ids) -> Scorer:
        """The scores of some questions."""
        return self.ask(torch.tensor(rows, device=self.device))


def _dot_product(
    model: DotProductModel, position: int, chunk: int
) -> Callable[[Tensor, Tensor], Scorer]:
    """Queries are made once, and multiplied with slices of the table, all into the same memory."""
    table = model.candidates(position)
    buffer = table.new_empty(min(chunk, MOST_ROWS * len(table)))

    def scorer(relation: Tensor, given: Tensor) -> Scorer:
        query = model.query(relation, given, position)
        b = len(query)

        def score(start: int, stop: int) -> Tensor:
            scores = buffer[: b * (stop - start)].view(b, stop - start)
            return torch.mm(query, table[start:stop].T, out=scores)

        return Scorer(score, lambda answers, scores: product_rounding(query, table[answers]))

    return scorer


def _any_model(model: ScoringModel, position: int) -> Callable[[Tensor, Tensor], Scorer]:
    """Spans of candidates are given by their ids."""

    def scorer(relation: Tensor, given: Tensor) -> Scorer:
        def score(start: int, stop: int) -> Tensor:
            everything = stop - start == model.n_entities
            candidates = None if everything else torch.arange(start, stop, device=given.device)
            return model.score_candidates(relation, given, position, candidates)

        if not isinstance(model, DotProductModel):
            return Scorer(score, _of_largest)
        query, table = model.query(relation, given, position), model.candidates(position)
        return Scorer(
            score,
            lambda answers, scores: (
                product_rounding(query, table[answers]) + score_rounding(scores)
            ),
        )

    return scorer


def _of_largest(answers: Tensor, scores: Tensor) -> Tensor:
    return score_rounding(scores)


def _balanced_rows(n_questions: int, n_candidates: int, chunk: int) -> int:
    """How many questions make a block such that their answers, sorted by span, fill about one block for each span.

    A tall block makes a better matrix product than a flat one, but is full only if there are few spans:
    ``rows * width = chunk`` and ``rows = n_questions * width / n_candidates``.
    """
    return min(max(isqrt(chunk * n_questions // n_candidates), LEAST_ROWS), MOST_ROWS)


def _rank_slot(slot: _Slot, ties: Ties, chunk: int) -> Ranks:
    """Rank the answers block by block."""
    check_ties(ties)
    counts, others = np.zeros((2, len(slot.facts))), np.zeros(len(slot.facts), dtype=np.int64)
    width = max(1, min(slot.n_candidates, chunk // slot.least_rows))
    spans = _cuts(slot.n_candidates, width)
    home = np.searchsorted(spans, slot.answers, side="right") - 1
    for span in np.unique(home):
        rows = np.flatnonzero(home == span)
        for block in np.split(rows, _cuts(len(rows), max(1, min(chunk // width, MOST_ROWS)))[1:-1]):
            counts[:, block], others[block] = _count_block(slot, block, spans, int(span))
    return to_ranks(counts, slot.n_candidates - others, ties)


def _cuts(total: int, most: int) -> Ids:
    """Where to cut ``0 .. total`` into as few parts as may be, none longer than ``most``, all of about one length.

    >>> _cuts(10, 4).tolist()
    [0, 3, 6, 10]
    """
    parts = -(-total // most)
    return np.arange(parts + 1) * total // parts


def _count_block(slot: _Slot, rows: Ids, spans: Ids, home: int) -> tuple[Floats, Ids]:
    """The counts of :func:`count_rivals` over all spans, and how many other known answers are left out.

    All answers of a block lie in the span ``home``. It is scored first; so every score is computed once, and the
    answer's is taken from among its rivals'.
    """
    row, value = slot.other_answers(rows)
    others = np.bincount(row, minlength=len(rows))
    span_of = np.searchsorted(spans, value, side="right") - 1
    order = np.argsort(span_of, kind="stable")
    ends = np.searchsorted(span_of[order], np.arange(len(spans)))
    left_out = torch.tensor(np.stack([row, value])[:, order], device=slot.device)
    answers = torch.tensor(slot.answers[rows], device=slot.device)

    counts = torch.zeros(2, len(rows), dtype=torch.float64, device=slot.device)
    scorer = slot.scorer(rows)
    for span in sorted(range(len(spans) - 1), key=lambda number: number != home):
        start, stop = int(spans[span]), int(spans[span + 1])
        scores = scorer.score(start, stop)
        if span == home:
            level = scorer.level(answers, scores, start)
        span_rows, span_values = left_out[:, ends[span] : ends[span + 1]]
        counts += count_rivals(scores, level, span_rows, span_values - start)
    return counts.cpu().numpy(), others


def _join(slots: list[Ranks]) -> Ranks:
    return Ranks(
        np.column_stack([slot.rank for slot in slots]),
        np.column_stack([slot.candidates for slot in slots]),
    )

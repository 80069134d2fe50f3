r"""Filtered ranks by counting, from one table of scores that is never held whole.

.. math::
    \operatorname{rank} = 1 + \#\{c : s_c > s_t\} + \tfrac12 \#\{c \neq t : s_c = s_t\}, \qquad c \text{ not known}

Shapes: ``b`` questions in a block, ``m`` candidates in a span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from getd.errors import ConfigError, NonFiniteScores, nearest
from getd.facts.facts import Facts, Ids
from getd.facts.known import Answers, KnownAnswers
from getd.models.base import ScoringModel

Floats = npt.NDArray[np.float64]
Ties = Literal["realistic", "optimistic", "pessimistic"]
CHUNK = 2**21  # scores held at a time: 8 MB, near the caches
LEAST_ROWS = 16  # questions scored together; where they would not fit with all candidates, candidates are cut instead


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of answers, counted from 1: ``(n, arity)`` for facts, ``(n, 1)`` for relations."""

    rank: Floats
    candidates: Ids  # how many were ranked, the answer among them: all but the other known answers


def rank_facts(
    model: ScoringModel, facts: Facts, known: KnownAnswers, *, ties: Ties = "realistic", chunk: int = CHUNK
) -> Ranks:
    """Rank the entity at each position of each fact among all entities but the other known answers.

    Parameters
    ----------
    ties
        Candidates that score exactly like the answer: ``realistic`` gives the mean of the ranks they share (a constant
        model earns chance), ``optimistic`` the first, ``pessimistic`` the last.
    chunk
        How many scores are held at a time; ranks do not depend on it, but for the rounding of the model's own scores.

    Raises
    ------
    NonFiniteScores
        If a score is NaN or infinite.
    """
    with _scoring(model) as device:
        relation = torch.tensor(facts.relation, device=device)
        entities = torch.tensor(facts.entities, device=device)

        def slot(position: int) -> _Slot:
            def score(rows: Tensor, candidates: Tensor | None) -> Tensor:
                given = entities[rows].index_fill_(1, torch.tensor(position, device=device), 0)  # never show the answer
                return model.score_candidates(relation[rows], given, position, candidates)

            return _Slot(score, model.n_entities, facts, position, known, device)

        return _join([_rank_slot(slot(position), ties, chunk) for position in range(facts.arity)])


def rank_relations(
    model: ScoringModel, facts: Facts, known: KnownAnswers, *, ties: Ties = "realistic", chunk: int = CHUNK
) -> Ranks:
    """Rank the relation of each fact among all relations but the other known answers; see :func:`rank_facts`."""
    with _scoring(model) as device:
        entities = torch.tensor(facts.entities, device=device)

        def score(rows: Tensor, candidates: Tensor | None) -> Tensor:
            scores = model.score_relations(entities[rows])
            return scores if candidates is None else scores[:, candidates]

        return _join([_rank_slot(_Slot(score, model.n_relations, facts, None, known, device), ties, chunk)])


@dataclass(frozen=True, eq=False)
class _Slot:
    """The questions that open one slot of some facts."""

    score: Callable[[Tensor, Tensor | None], Tensor]  # rows of facts (b,), candidates (m,) or all -> (b, m)
    n_candidates: int
    facts: Facts
    position: int | None  # None: the relation
    known: KnownAnswers
    device: torch.device

    @property
    def answers(self) -> Ids:
        return self.facts.relation if self.position is None else self.facts.entities[:, self.position]

    def known_answers(self, rows: Ids) -> Answers:
        return self.known.lookup(self.facts.relation[rows], self.facts.entities[rows], self.position)


def _rank_slot(slot: _Slot, ties: Ties, chunk: int) -> Ranks:
    """Rank the answers block by block."""
    _check_ties(ties)
    above, level, others = (np.zeros(len(slot.facts), dtype=np.int64) for _ in range(3))
    width = max(1, min(slot.n_candidates, chunk // LEAST_ROWS))
    spans = _cuts(slot.n_candidates, width)
    home = np.searchsorted(spans, slot.answers, side="right") - 1
    for span in np.unique(home):
        rows = np.flatnonzero(home == span)
        for block in np.split(rows, _cuts(len(rows), max(1, chunk // width))[1:-1]):
            above[block], level[block], others[block] = _count_block(slot, block, spans, int(span))
    within = {"realistic": level / 2, "optimistic": 0.0 * level, "pessimistic": 1.0 * level}[ties]
    return Ranks(1 + above + within, slot.n_candidates - others)


def _cuts(total: int, most: int) -> Ids:
    """Where to cut ``0 .. total`` into as few parts as may be, none longer than ``most``, all of about one length.

    >>> _cuts(10, 4).tolist()
    [0, 3, 6, 10]
    """
    parts = -(-total // most)
    return np.arange(parts + 1) * total // parts


def _count_block(slot: _Slot, rows: Ids, spans: Ids, home: int) -> tuple[Ids, Ids, Ids]:
    """How many rivals of each answer score above it and level with it, and how many other known answers are left out.

    All answers of a block lie in the span ``home``. It is scored first; so every score is computed once, and the
    answer's is taken from among its rivals'.
    """
    answers = torch.tensor(slot.answers[rows], device=slot.device)[:, None]  # (b, 1)
    known = slot.known_answers(rows)
    other = known.values != slot.answers[rows][known.rows]
    row, value = (torch.tensor(part[other], device=slot.device) for part in (known.rows, known.values))
    counts = torch.zeros(2, len(rows), dtype=torch.int64, device=slot.device)
    for span in sorted(range(len(spans) - 1), key=lambda number: number != home):
        start, stop = int(spans[span]), int(spans[span + 1])
        scores = _score_span(slot, rows, start, stop)
        if span == home:
            target = scores.gather(1, answers - start)  # (b, 1)
        here = (value >= start) & (value < stop)
        counts += _count(scores, target, row[here], value[here] - start)
    counts[1] -= 1  # the answer is level with itself
    above, level = counts.cpu().numpy()
    return above, level, np.bincount(row.cpu().numpy(), minlength=len(rows))


def _count(scores: Tensor, target: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """How many of each row's scores are above and level with its target, those at ``(row, column)`` left out."""
    counts = torch.stack([torch.count_nonzero(scores > target, dim=1), torch.count_nonzero(scores == target, dim=1)])
    known, limit = scores[row, column], target[row, 0]
    counts[0].index_add_(0, row, (known > limit).long(), alpha=-1)
    counts[1].index_add_(0, row, (known == limit).long(), alpha=-1)
    return counts


def _score_span(slot: _Slot, rows: Ids, start: int, stop: int) -> Tensor:
    """The scores of the candidates ``start .. stop - 1``, ``(b, m)``, all of them finite.

    A question alone goes in twice: a matrix times a vector, unlike a matrix times a matrix, may give equal candidates
    scores that differ in the last bit.
    """
    pair = torch.tensor(rows if len(rows) > 1 else rows.repeat(2), device=slot.device)
    everything = stop - start == slot.n_candidates
    candidates = None if everything else torch.arange(start, stop, device=slot.device)
    scores = slot.score(pair, candidates)[: len(rows)]
    if not torch.stack(torch.aminmax(scores)).isfinite().all():  # one pass; NaN comes through
        wrong = int((~scores.isfinite()).sum())
        raise NonFiniteScores(f"{wrong} of {scores.numel()} scores are NaN or infinite")
    return scores


@contextmanager
def _scoring(model: ScoringModel) -> Iterator[torch.device]:
    """The model's device, the model in evaluation mode without gradients; each part's own mode is restored."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            tensor = next(chain(model.parameters(), model.buffers()), None)
            yield torch.device("cpu") if tensor is None else tensor.device
    finally:
        for part, mode in modes:
            part.training = mode


def _join(slots: list[Ranks]) -> Ranks:
    return Ranks(np.column_stack([slot.rank for slot in slots]), np.column_stack([slot.candidates for slot in slots]))


def _check_ties(ties: str) -> None:
    rules = get_args(Ties)
    if ties not in rules:
        raise ConfigError(f"ties: expected one of {', '.join(rules)}, found {ties!r}{nearest(ties, rules)}")

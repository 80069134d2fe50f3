"""Questions with several open positions: the facts that fill them and are most likely true.

How good an answer is shows only when all positions are filled: it is the confidence of the whole fact, or its
plausibility where the run was not calibrated. So a beam of filled facts is improved position by position. Where the
names are few, all fillings are tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from getd.arrays import Floats, Ids
from getd.facts.facts import Facts
from getd.io.deadline import check_deadline
from getd.prediction.answer import ROOM, Answer, Answerer, best_columns
from getd.prediction.question import Question

BEAM = 64  # fillings that are kept, at least
WORK = 2**27  # scores of a round: more are kept where that allows it
EACH = 16  # candidates of one position that are tried in each
ROUNDS = 4
ALL = 2**16  # fillings: so many are all tried
RATED = 2**28  # scores for the fillings of training facts, of which the best are begun with


def answer_jointly(
    answerer: Answerer,
    question: Question,
    top: int,
    include_known: bool = False,
    all_below: int = ALL,
) -> list[Answer]:
    """The best answers of a question with several open positions."""
    kb, fact, holes = answerer.kb, question.fact, question.open
    if kb.n_entities ** len(holes) <= all_below:
        every = np.array(list(product(range(kb.n_entities), repeat=len(holes))), dtype=np.int64)
        fillings = _ranked(every, _value(answerer, question, every)).fillings
    else:
        allowed = WORK // (EACH * len(holes) * fact.arity * kb.n_entities)
        fillings = _search(answerer, question, max(BEAM, top, allowed)).fillings
    if not include_known:
        fillings = fillings[~answerer.known.contains(_filled(fact, holes, fillings))]
    best = fillings[:top]
    found = answerer.evidence(_filled(fact, holes, best))
    names = [kb.entities.decode(column) for column in best.T]
    numbers = zip(found.plausibility.tolist(), found.confidence, found.known.tolist(), strict=True)
    return [
        Answer(each, plausibility, None, chance, known)
        for each, (plausibility, chance, known) in zip(
            zip(*names, strict=True), numbers, strict=True
        )
    ]


@dataclass(frozen=True)
class _Beam:
    """Fillings with what speaks for them, the best first."""

    fillings: Ids  # (n, holes)
    value: Floats  # (n, 2)

    def joined(self, fillings: Ids, value: Floats) -> _Beam:
        return _ranked(
            np.concatenate([self.fillings, fillings]), np.concatenate([self.value, value])
        )


def _ranked(fillings: Ids, value: Floats) -> _Beam:
    order = np.lexsort([*fillings.T[::-1], *-value.T[::-1]])
    return _Beam(fillings[order], value[order])


def _value(answerer: Answerer, question: Question, fillings: Ids) -> Floats:
    """By what fillings are ranked: what confidence rises with, and of equal ones the plausibility."""
    found = answerer.evidence(_filled(question.fact, question.open, fillings))
    return np.stack([found.total, found.plausibility], axis=1)


def _search(answerer: Answerer, question: Question, width: int) -> _Beam:
    """Start from what fills the holes in training facts of the relation; open each hole of the best in turn."""
    start = _seeds(answerer, question, width)
    beam = _ranked(start, _value(answerer, question, start))
    tried = {tuple(row) for row in start.tolist()}
    for _ in range(ROUNDS):
        best = beam.fillings[:width]
        new = np.concatenate(
            [_neighbours(answerer, question, best, place) for place in range(len(question.open))]
        )
        new = np.array(
            [row for row in np.unique(new, axis=0).tolist() if tuple(row) not in tried],
            dtype=np.int64,
        )
        if not len(new):
            break
        tried.update(map(tuple, new.tolist()))
        beam = beam.joined(new, _value(answerer, question, new))
        if np.array_equal(beam.fillings[:width], best):
            break
    return beam


def _seeds(answerer: Answerer, question: Question, width: int) -> Ids:
    """What stands at the open positions of training facts: the best of those that share most with the question."""
    fact, holes = question.fact, list(question.open)
    facts = answerer.kb.split("train").get(fact.arity)
    here = (
        facts.take(facts.relation == fact.relation[0])
        if facts is not None
        else fact.take(slice(0, 0))
    )
    if not len(here):
        return np.zeros((1, len(holes)), dtype=np.int64)
    given = [position for position in range(fact.arity) if position not in holes]
    shared = (here.entities[:, given] == fact.entities[0, given]).sum(axis=1)
    distinct, first, counts = np.unique(
        here.entities[:, holes], axis=0, return_index=True, return_counts=True
    )
    most = np.zeros(len(distinct), dtype=np.int64)
    _, number = np.unique(here.entities[:, holes], axis=0, return_inverse=True)
    np.maximum.at(most, number.reshape(-1), shared)
    rated = max(width, RATED // (answerer.kb.n_entities * fact.arity))
    found: Ids = distinct[np.lexsort([first, -counts, -most])[:rated]]
    return (
        found
        if len(found) <= width
        else _ranked(found, _value(answerer, question, found)).fillings[:width]
    )


def _neighbours(answerer: Answerer, question: Question, fillings: Ids, place: int) -> Ids:
    """The fillings with another entity in one place: for each those that are likeliest there."""
    position, found = question.open[place], []
    at_once = max(1, ROOM // answerer.kb.n_entities)
    for start in range(0, len(fillings), at_once):
        check_deadline()
        some = fillings[start : start + at_once]
        scores = answerer.ranked_scores(_filled(question.fact, question.open, some), position)
        rows, columns = best_columns(scores, EACH)
        new = some[rows.numpy()].copy()
        new[:, place] = columns.numpy()
        found.append(new)
    return np.concatenate(found)


def _filled(fact: Facts, holes: tuple[int, ...], fillings: Ids) -> Facts:
    entities = np.repeat(fact.entities, len(fillings), axis=0)
    entities[:, list(holes)] = fillings
    return Facts(np.repeat(fact.relation, len(fillings)), entities)

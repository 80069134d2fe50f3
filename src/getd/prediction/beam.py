"""Questions with several open positions: find the facts that fill them and are most likely true.

How good an answer is shows only when all positions are filled: it is the confidence of the whole
fact, or its plausibility if the run is not calibrated. So a beam of filled facts is improved
position by position. With few entities, every combination is tried.
"""

from itertools import product

import numpy as np

from getd.arrays import Ids
from getd.facts.facts import Facts
from getd.prediction.answer import Answer, Answerer
from getd.prediction.question import Question, fill_positions

Beam = dict[tuple[int, ...], tuple[float, float]]  # fillings of the open positions, their values
MIN_WIDTH = 64  # fillings in the beam
ROUND_SCORES = 2**27  # a round computes at most so many scores: the beam is as wide as they allow
BRANCHES = 16  # candidates of one position that are tried in each filling
MAX_ROUNDS = 4
EXHAUSTIVE_LIMIT = 2**16  # up to so many fillings are all tried
SEED_SCORES = 2**28  # scores that rate the fillings of training facts, to start from the best


def answer_jointly(
    answerer: Answerer, question: Question, top: int, include_known: bool = False
) -> list[Answer]:
    """Return the best answers of a question with several open positions."""
    n_entities = answerer.kb.n_entities
    n_open = len(question.open)
    if n_entities**n_open <= EXHAUSTIVE_LIMIT:
        every = np.array(list(product(range(n_entities), repeat=n_open)))
        fillings = _ranked(_rate(answerer, question, every))
    else:
        scores_per_filling = BRANCHES * n_open * question.fact.arity * n_entities
        width = max(MIN_WIDTH, top, ROUND_SCORES // scores_per_filling)
        fillings = _search(answerer, question, width)

    if not include_known:
        fillings = fillings[~answerer.known.contains(_filled(question, fillings))]

    best = fillings[:top]
    evidence = answerer.evidence(_filled(question, best))
    columns = (
        zip(*map(answerer.kb.entities.decode, best.T), strict=True),
        evidence.plausibility.tolist(),
        [None] * len(best),
        evidence.confidence,
        evidence.known.tolist(),
    )
    return [Answer(*values) for values in zip(*columns, strict=True)]


def _rate(answerer: Answerer, question: Question, fillings: Ids) -> Beam:
    """Return what fillings are ranked by: what confidence rises with, then the plausibility."""
    evidence = answerer.evidence(_filled(question, fillings))
    values = zip(evidence.total.tolist(), evidence.plausibility.tolist(), strict=True)
    return dict(zip(map(tuple, fillings.tolist()), values, strict=True))


def _ranked(beam: Beam) -> Ids:
    """Sort fillings by value, the best first; equal ones by their ids."""
    order = [(-total, -plausibility, filling) for filling, (total, plausibility) in beam.items()]
    return np.array([filling for *_, filling in sorted(order)])


def _search(answerer: Answerer, question: Question, width: int) -> Ids:
    """Improve the beam round by round: reopen each open position of its best fillings."""
    beam = _rate(answerer, question, _seeds(answerer, question, width))
    ranked = _ranked(beam)

    for _ in range(MAX_ROUNDS):
        best = ranked[:width]
        facts = _filled(question, best)
        neighbours = []
        for position in question.open:
            likeliest = answerer.fill_best(facts, position, BRANCHES)
            neighbours.append(likeliest.entities[:, question.open])

        distinct = np.unique(np.concatenate(neighbours), axis=0).tolist()
        new = [row for row in distinct if tuple(row) not in beam]
        if not new:
            break

        beam |= _rate(answerer, question, np.array(new))
        ranked = _ranked(beam)
        if np.array_equal(ranked[:width], best):
            break
    return ranked


def _seeds(answerer: Answerer, question: Question, width: int) -> Ids:
    """Return fillings that training facts of the relation have: the best that share most."""
    fact = question.fact
    positions = list(question.open)
    facts = answerer.kb.split("train").get(fact.arity, fact.take(slice(0, 0)))
    facts = facts.take(facts.relation == fact.relation[0])
    if not len(facts):
        return np.zeros((1, len(positions)), dtype=np.int64)

    # Each distinct filling, the row where it is first, and how often there is one.
    fillings, first, filling_of, counts = np.unique(
        facts.entities[:, positions],
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )

    # How many given entities the best fact of each filling shares with the question.
    given = np.delete(fact.entities, positions, axis=1)
    shared = (np.delete(facts.entities, positions, axis=1) == given).sum(axis=1)
    most_shared = np.zeros(len(fillings), dtype=np.int64)
    np.maximum.at(most_shared, filling_of.reshape(-1), shared)

    n_rated = max(width, SEED_SCORES // (answerer.kb.n_entities * fact.arity))
    seeds: Ids = fillings[np.lexsort([first, -counts, -most_shared])[:n_rated]]
    if len(seeds) > width:
        seeds = _ranked(_rate(answerer, question, seeds))[:width]
    return seeds


def _filled(question: Question, fillings: Ids) -> Facts:
    """Fill the open positions of a question, once for each filling."""
    repeated = question.fact.take(np.zeros(len(fillings), dtype=np.int64))
    return fill_positions(repeated, question.open, fillings)

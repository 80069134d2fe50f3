"""Rate facts: how plausible they are, and which known facts look wrong."""

from dataclasses import dataclass

import numpy as np

from getd.arrays import Floats
from getd.calibration.confidence import log_fit
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts, count
from getd.prediction.answer import Answerer, Progress
from getd.prediction.question import Labels

BATCH_ROWS = 512  # facts in a batch


@dataclass(frozen=True)
class Rating:
    """What a run thinks of a fact."""

    fact: Labels  # relation label, then entities
    plausibility: float  # mean log-probability of its entities, each at its position
    fit: float  # how well its worst entity fits its slot, judged by the other facts of the entity
    confidence: float | None  # the chance that it is true; None: the run is not calibrated
    ranks: tuple[float, ...]  # of each entity at its position, known answers left out
    known: bool  # whether the data has it


def rate(answerer: Answerer, facts: Facts) -> list[Rating]:
    """Rate facts of one arity."""
    evidence = answerer.evidence(facts)
    ranks: Floats = np.zeros(facts.entities.shape)
    for model, rows in answerer.raters(facts):
        ranks[rows] = rank_facts(model, facts.take(rows), answerer.known).rank

    columns = (
        answerer.kb.decode(facts),
        evidence.plausibility.tolist(),
        evidence.fit.tolist(),
        evidence.confidence,
        [tuple(row) for row in ranks.tolist()],
        evidence.known.tolist(),
    )
    return [Rating(*values) for values in zip(*columns, strict=True)]


def suspicious(answerer: Answerer, top: int, progress: Progress) -> list[Rating]:
    """Return the known facts that look most like mistakes, the worst first.

    A model learns its training facts, the wrong ones too. What it cannot learn away is what the
    *other* facts of an entity say: the slot fit counts as much as the plausibility.
    """
    kb = answerer.kb
    total = sum(count(blocks) for blocks in kb.splits.values())
    done = 0
    worst = []  # how good it looks, split, arity, row
    for split, blocks in kb.splits.items():
        for arity, facts in blocks.items():
            for start in range(0, len(facts), BATCH_ROWS):
                evidence = answerer.evidence(facts.take(slice(start, start + BATCH_ROWS)))
                values = (evidence.plausibility + log_fit(evidence.fit)).tolist()
                for row, value in enumerate(values, start):
                    worst.append((value, split, arity, row))
                worst = sorted(worst)[:top]

                done += len(values)
                progress(done, total)

    ratings = []
    for _, split, arity, row in worst:
        ratings += rate(answerer, kb.split(split)[arity].take(slice(row, row + 1)))
    return ratings

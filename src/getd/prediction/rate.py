"""How plausible facts are that are given, and which known facts look wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from getd.calibration.confidence import log_fit
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts
from getd.prediction.answer import Answerer

AT_ONCE = 512  # facts


@dataclass(frozen=True)
class Rating:
    """What a run thinks of a fact."""

    fact: tuple[str, ...]  # relation label, then entities
    plausibility: float  # mean log-probability of its entities, each in its place
    fit: float  # how well the entity that fits worst fits its role, by what else it does
    confidence: float | None  # the chance that it is true; None where the run was not calibrated
    ranks: tuple[float, ...]  # of each entity in its place, among all that make no other known fact
    known: bool  # whether the data has it


def rate(answerer: Answerer, facts: Facts) -> list[Rating]:
    """Rate facts of one arity."""
    found = answerer.evidence(facts)
    ranks = rank_facts(answerer.model, facts, answerer.known).rank.tolist()
    return [
        Rating(fact, plausibility, fit, chance, tuple(rank), known)
        for fact, plausibility, fit, chance, rank, known in zip(
            answerer.kb.decode(facts),
            found.plausibility.tolist(),
            found.fit.tolist(),
            found.confidence,
            ranks,
            found.known.tolist(),
            strict=True,
        )
    ]


def suspicious(
    answerer: Answerer, top: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Rating]:
    """The known facts that look most like mistakes, the worst first.

    A model has learnt its training facts, the wrong ones too. What it cannot learn away is what the *other* facts of an
    entity say of it: the role fit counts as much as the plausibility.
    """
    kb, done = answerer.kb, 0
    parts = [
        (split, arity, facts)
        for split, blocks in kb.splits.items()
        for arity, facts in blocks.items()
    ]
    total = sum(len(facts) for *_, facts in parts)
    worst: list[tuple[float, str, int, int]] = []
    for split, arity, facts in parts:
        for start in range(0, len(facts), AT_ONCE):
            found = answerer.evidence(facts.take(slice(start, start + AT_ONCE)))
            doubt = found.plausibility + log_fit(found.fit)
            rows = np.argsort(doubt, kind="stable")[:top].tolist()
            worst = sorted(
                [*worst, *((float(doubt[row]), split, arity, start + row) for row in rows)]
            )[:top]
            done += len(doubt)
            progress(done, total)
    return [
        rate(answerer, kb.split(split)[arity].take(slice(row, row + 1)))[0]
        for _, split, arity, row in worst
    ]

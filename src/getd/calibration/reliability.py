"""Reliability: how often the first answer is right, compared with its probability."""

from collections.abc import Mapping

import numpy as np
import torch

from getd.arrays import Bools, Floats
from getd.config import Settings
from getd.evaluation.scoring import filtered_scores
from getd.facts.facts import Blocks
from getd.facts.known_answers import KnownAnswers
from getd.models.base import ScoringModel

BINS = 15


class Reliability(Settings):
    """The probability of first answers and how often they are right, over bins of equal size."""

    error: float  # expected calibration error: the mean distance of the two
    probability: tuple[float, ...]  # the mean of each bin
    right: tuple[float, ...]  # the share of each bin
    questions: int


def reliability_under(
    model: ScoringModel, blocks: Blocks, known: KnownAnswers, temperatures: Mapping[int, Floats]
) -> list[Reliability]:
    """Measure the first answers to all questions of facts, with each temperature of their arity."""
    probabilities = []  # (t, b) each
    right = []
    for arity, facts in blocks.items():
        for position in range(arity):
            for batch in filtered_scores(model, facts, [position], known):
                best = batch.scores.max(dim=1)
                below = batch.scores - best.values[:, None]
                scaled = [torch.exp(below / t).sum(dim=1) for t in temperatures[arity].tolist()]
                probabilities.append(torch.stack(scaled).reciprocal())
                right.append(best.indices == batch.answers)

    is_right = torch.cat(right).double().numpy()
    tables = torch.cat(probabilities, dim=1).double().numpy()
    return [reliability_of(probability, is_right) for probability in tables]


def reliability_of(probability: Floats, right: Floats | Bools, bins: int = BINS) -> Reliability:
    """Measure reliability from the probability of each first answer and whether it is right.

    >>> right = np.array([0.0, 0.0, 1.0, 1.0])
    >>> reliability_of(np.array([0.2, 0.2, 0.9, 0.9]), right, bins=2).error
    0.15
    """
    means = []
    shares = []
    distance = 0.0  # of the two, summed over questions
    for rows in np.array_split(np.argsort(probability, kind="stable"), bins):
        if len(rows):
            means.append(float(probability[rows].mean()))
            shares.append(float(right[rows].mean()))
            distance += abs(means[-1] - shares[-1]) * len(rows)

    return Reliability(
        error=round(distance / len(probability), 12),
        probability=tuple(means),
        right=tuple(shares),
        questions=len(probability),
    )

"""Ranks to numbers. Every question counts once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from getd.arrays import Floats, Ids

RESAMPLES = 1000
_HELD = 2**20  # draws held at a time
_FEW = 32  # candidates


@dataclass(frozen=True)
class Metrics:
    """What a set of ranks comes to."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float
    amri: float
    mrr_at_chance: float  # what candidates in random order would have
    mrr_interval: tuple[float, float]  # 95 %, by resampling facts
    questions: int

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "mrr_interval": list(self.mrr_interval)}


def measure(rank: Floats, candidates: Ids, fact: Ids, *, seed: int = 0) -> Metrics:
    """All metrics of some questions: their ranks, how many candidates each had, and the fact each was made from."""
    return Metrics(
        mrr=mean_reciprocal_rank(rank),
        hits_at_1=hits_at(rank, 1),
        hits_at_3=hits_at(rank, 3),
        hits_at_10=hits_at(rank, 10),
        mean_rank=float(np.mean(rank)),
        amri=adjusted_mean_rank_index(rank, candidates),
        mrr_at_chance=mrr_at_chance(candidates),
        mrr_interval=mrr_interval(rank, fact, seed=seed),
        questions=len(rank),
    )


def mean_reciprocal_rank(rank: Floats) -> float:
    """The mean of one over the rank.

    >>> mean_reciprocal_rank(np.array([1.0, 2.0, 4.0, 4.0]))
    0.5
    """
    return float(np.mean(1 / rank))


def hits_at(rank: Floats, number: int) -> float:
    """The share of answers among the first ``number``; a mean rank of ties that lies between two is not rounded.

    >>> hits_at(np.array([1.0, 1.5, 3.0, 3.5]), 3)
    0.75
    """
    return float(np.mean(rank <= number))


def adjusted_mean_rank_index(rank: Floats, candidates: Ids) -> float:
    r"""The mean rank on a scale from 1 (always first) over 0 (chance) to -1 (always last).

    .. math:: 1 - \frac{\overline{\operatorname{rank}} - 1}{\overline{(\text{candidates} + 1) / 2} - 1}

    Where no question has a rival there is nothing to tell from chance, and it is 0.

    >>> adjusted_mean_rank_index(np.array([1.0, 2.0]), np.array([5, 3]))
    0.6666666666666667
    """
    expected = float(np.mean((candidates + 1) / 2))
    return 1 - (float(np.mean(rank)) - 1) / (expected - 1) if expected > 1 else 0.0


def mrr_at_chance(candidates: Ids) -> float:
    r"""The MRR of candidates in random order: the mean over questions of :math:`H_c / c`, with c candidates.

    :math:`H_c = 1 + 1/2 + \dots + 1/c` is summed for few candidates, and taken from its expansion, whose error is
    below :math:`10^{-11}`, for many.

    >>> mrr_at_chance(np.array([1, 2, 2]))
    0.8333333333333334
    """
    few = np.cumsum(1 / np.arange(1, _FEW + 1))
    c = np.maximum(candidates, 1).astype(np.float64)
    many = np.log(c) + np.euler_gamma + 1 / (2 * c) - 1 / (12 * c**2) + 1 / (120 * c**4)
    harmonic = np.where(candidates <= _FEW, few[np.minimum(candidates, _FEW) - 1], many)
    return float(np.mean(harmonic / c))


def mrr_interval(
    rank: Floats, fact: Ids, *, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The 95 % bootstrap interval of the MRR: facts, each with all its questions, are drawn anew with replacement.

    The questions of a fact stand and fall together, so facts are the unit. Percentiles 2.5 and 97.5 of the MRRs.
    """
    _, owner = np.unique(fact, return_inverse=True)
    sums, sizes = np.bincount(owner, weights=1 / rank), np.bincount(owner)
    generator = np.random.default_rng(seed)
    step = max(1, _HELD // len(sums))
    means = []
    for start in range(0, resamples, step):
        drawn = generator.integers(0, len(sums), (min(step, resamples - start), len(sums)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)

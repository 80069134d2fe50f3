"""Metrics: ranks to numbers. Every question counts once."""

import numpy as np

from getd.arrays import Floats, Ids
from getd.evaluation.record import Record

RESAMPLES = 1000
MAX_DRAWS = 2**20  # draws of the bootstrap that are held at a time
MAX_SUMMED = 32  # candidates up to which a harmonic number is summed


class Metrics(Record):
    """A summary of ranks."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float
    amri: float
    mrr_at_chance: float = float("nan")  # of candidates in random order; older reports lack it
    mrr_interval: tuple[float, float]  # 95 %, by resampling facts
    questions: int


def measure(rank: Floats, candidates: Ids, fact: Ids, *, seed: int = 0) -> Metrics:
    """Compute all metrics of questions from their ranks, numbers of candidates and facts."""
    return Metrics(
        mrr=mean_reciprocal_rank(rank),
        hits_at_1=hits_at(rank, 1),
        hits_at_3=hits_at(rank, 3),
        hits_at_10=hits_at(rank, 10),
        mean_rank=float(rank.mean()),
        amri=adjusted_mean_rank_index(rank, candidates),
        mrr_at_chance=mrr_at_chance(candidates),
        mrr_interval=mrr_interval(rank, fact, seed),
        questions=len(rank),
    )


def mean_reciprocal_rank(rank: Floats) -> float:
    """Return the mean of one over the rank.

    >>> mean_reciprocal_rank(np.array([1.0, 2.0, 4.0, 4.0]))
    0.5
    """
    return float((1 / rank).mean())


def hits_at(rank: Floats, number: int) -> float:
    """Return the share of answers among the first ``number``; the mean rank of ties is not rounded.

    >>> hits_at(np.array([1.0, 1.5, 3.0, 3.5]), 3)
    0.75
    """
    return float((rank <= number).mean())


def adjusted_mean_rank_index(rank: Floats, candidates: Ids) -> float:
    r"""Return the mean rank on a scale from 1 (always first) over 0 (chance) to -1 (always last).

    .. math::
        1 - \frac{\overline{\operatorname{rank}} - 1}{\overline{(\text{candidates} + 1) / 2} - 1}

    It is 0 if no question has a rival, for then nothing differs from chance.

    >>> adjusted_mean_rank_index(np.array([1.0, 2.0]), np.array([5, 3]))
    0.6666666666666667
    """
    expected = float(((candidates + 1) / 2).mean())
    if expected <= 1:
        return 0.0
    return 1 - (float(rank.mean()) - 1) / (expected - 1)


def mrr_at_chance(candidates: Ids) -> float:
    r"""Return the MRR of candidates in random order: the mean of :math:`H_c / c` over questions.

    :math:`H_c = 1 + 1/2 + \dots + 1/c` is summed for few candidates. For many it comes from its
    expansion, whose error is below :math:`10^{-11}`.

    >>> mrr_at_chance(np.array([1, 2, 2]))
    0.8333333333333334
    """
    few = (1 / np.arange(1, MAX_SUMMED + 1)).cumsum()
    c = np.maximum(candidates, 1).astype(np.float64)
    many = np.log(c) + np.euler_gamma + 1 / (2 * c) - 1 / (12 * c**2) + 1 / (120 * c**4)
    summed = few[np.minimum(candidates, MAX_SUMMED) - 1]
    harmonic = np.where(candidates <= MAX_SUMMED, summed, many)
    return float((harmonic / c).mean())


def mrr_interval(rank: Floats, fact: Ids, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the MRR: percentiles 2.5 and 97.5 over resamples.

    The questions of a fact depend on each other, so facts are drawn, each with all its questions.
    """
    _, owner = np.unique(fact, return_inverse=True)
    sums = np.bincount(owner, weights=1 / rank)
    sizes = np.bincount(owner)

    generator = np.random.default_rng(seed)
    n_facts = len(sums)
    step = max(1, MAX_DRAWS // n_facts)
    means = []
    for start in range(0, RESAMPLES, step):
        n_draws = min(step, RESAMPLES - start)
        drawn = generator.integers(0, n_facts, (n_draws, n_facts))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))

    low, high = np.percentile(np.concatenate(means), [2.5, 97.5]).tolist()
    return low, high

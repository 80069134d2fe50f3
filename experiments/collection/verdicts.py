"""Compare a model with the better baseline on the same questions, by a paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from getd.arrays import Floats, Ids
from getd.evaluation.metrics import mean_reciprocal_rank
from getd.evaluation.record import Record

RESAMPLES = 2000
MAX_DRAWS = 2**20  # draws of the bootstrap that are held at a time
MIN_QUESTIONS = 50  # of an arity, to judge it
HIGH_MRR = 0.95  # of a baseline, from which on it need not be surpassed
SETTLED_EPOCHS = 5  # after which the MRR on validation should not fall any more


class Comparison(Record):
    """A model and the baselines on the same questions."""

    questions: int
    mrr: float
    baselines: dict[str, float]  # MRR by name
    better: str  # the baseline with the higher MRR on these questions
    interval: tuple[float, float]  # 95 %, of the difference to the better baseline

    @property
    def baseline_mrr(self) -> float:
        """The MRR of the better baseline."""
        return self.baselines[self.better]

    @property
    def difference(self) -> float:
        """How far the model is above the better baseline."""
        return self.mrr - self.baseline_mrr

    @property
    def is_below(self) -> bool:
        """Whether the whole interval is below the better baseline."""
        return self.interval[1] < 0

    @property
    def is_above(self) -> bool:
        """Whether the whole interval is above the better baseline."""
        return self.interval[0] > 0

    @property
    def must_be_above(self) -> bool:
        """Whether the better baseline leaves something to gain."""
        return self.baseline_mrr < HIGH_MRR


def compare(rank: Floats, baselines: Mapping[str, Floats], fact: Ids) -> Comparison:
    """Compare the ranks of questions with those of baselines; ``fact`` is each question's fact."""
    mrrs = {name: mean_reciprocal_rank(other) for name, other in baselines.items()}
    better = max(mrrs, key=lambda name: mrrs[name])

    gain = 1 / rank - 1 / baselines[better]
    return Comparison(
        questions=len(rank),
        mrr=mean_reciprocal_rank(rank),
        baselines=mrrs,
        better=better,
        interval=mean_interval(gain, fact),
    )


def mean_interval(gain: Floats, fact: Ids, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean gain over questions.

    The questions of a fact depend on each other, so facts are drawn, each with all its questions.
    """
    _, owner = np.unique(fact, return_inverse=True)
    sums = np.bincount(owner, weights=gain)
    sizes = np.bincount(owner)

    rng = np.random.default_rng(seed)
    n_facts = len(sums)
    step = max(1, MAX_DRAWS // n_facts)
    means = []
    for start in range(0, RESAMPLES, step):
        drawn = rng.integers(0, n_facts, (min(step, RESAMPLES - start), n_facts))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))

    low, high = np.percentile(np.concatenate(means), [2.5, 97.5]).tolist()
    return low, high


def largest_fall(curve: Sequence[tuple[int, float]]) -> float:
    """Return the largest fall below the best MRR so far, after ``SETTLED_EPOCHS``.

    ``curve`` has the epochs that were validated and their MRR.
    """
    best = 0.0
    fall = 0.0
    for epoch, mrr in curve:
        if epoch > SETTLED_EPOCHS:
            fall = max(fall, best - mrr)
        best = max(best, mrr)
    return fall

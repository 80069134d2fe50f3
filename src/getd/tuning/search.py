"""How a study draws settings and ends trials early, in Optuna's terms."""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial

from getd.choices import Pruning
from getd.tuning.space import Choices, Dimension

TRIAL_STRIDE = 7919  # between the seeds of two trials; a prime, so that studies seldom share one


class SeededByTrial(TPESampler):
    """TPE whose random numbers depend on the trial, not on the process that runs it.

    So processes draw different settings, and a resumed study draws what it would have drawn anyway.
    The first trial gets the values that are given.
    """

    def __init__(self, seed: int, first: Mapping[str, Any]) -> None:
        super().__init__(constant_liar=True)
        self._seed = seed
        self._first = first

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        seed = self._seed + TRIAL_STRIDE * trial.number
        super().__init__(seed=seed, constant_liar=True)  # as new: it has drawn nothing yet

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if trial.number == 0 and param_name in self._first:
            return self._first[param_name]
        return super().sample_independent(study, trial, param_name, param_distribution)


def pruner(pruning: Pruning, epochs: int) -> BasePruner:
    if pruning == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=5)
    if pruning == "hyperband":
        return HyperbandPruner(min_resource=min(5, epochs), max_resource=epochs)
    return NopPruner()


def distribution(dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.choices)
    if dimension.is_whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log)

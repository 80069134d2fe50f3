"""One trial of a study, independent of Optuna."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

TrialStateName = Literal["complete", "pruned", "running", "lost"]
STATES = get_args(TrialStateName)
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """The settings of one trial and how they did on validation."""

    number: int
    state: TrialStateName
    values: Values  # by section.key
    mrr: float | None  # the best on validation; of a pruned trial, up to there
    curve: Mapping[int, float] = field(default_factory=dict)  # validation MRR by epoch
    about: Values = field(default_factory=dict)  # best_epoch, seconds, reason

    @property
    def seconds(self) -> float | None:
        """How long it was trained; None for a trial that was lost."""
        return self.about.get("seconds")


Trials = Sequence[Trial]


def best_trial(trials: Trials) -> Trial | None:
    """Return the completed trial with the highest MRR; the earlier one of two that tie."""
    done = [trial for trial in trials if trial.state == "complete"]
    return max(done, key=lambda trial: (trial.mrr or 0.0, -trial.number), default=None)


def describe_states(trials: Trials) -> str:
    """Say how many trials are in each state; empty: there are none."""
    return ", ".join(f"{number} {state}" for state, number in counts(trials).items() if number)


def short(value: object) -> str:
    """Write a setting with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counts(trials: Trials) -> dict[str, int]:
    states = [trial.state for trial in trials]
    return {state: states.count(state) for state in STATES}

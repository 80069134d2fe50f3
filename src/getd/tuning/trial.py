"""What a trial is, whoever ran it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Trial:
    """What one trial tried and found."""

    number: int
    state: str  # complete, pruned, running, lost
    values: Mapping[str, Any]  # by section.key
    mrr: float | None  # the best on validation; of a pruned trial, up to there
    curve: Mapping[int, float] = field(default_factory=dict)  # validation MRR by epoch
    about: Mapping[str, Any] = field(default_factory=dict)  # best_epoch, seconds, reason


def counts(trials: Sequence[Trial]) -> dict[str, int]:
    """How many trials there are of each state."""
    return {
        state: sum(trial.state == state for trial in trials)
        for state in ("complete", "pruned", "running", "lost")
    }

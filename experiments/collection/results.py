"""Results by label, split, data set and seed, in one file that is written after each training."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.collection.kinds import ONLY_COUNTS
from experiments.collection.verdicts import MIN_QUESTIONS, Comparison
from getd.evaluation.record import Record
from getd.io.atomic import atomic_path

RESULTS = Path(__file__).parent / "results.json"
MAX_FALL = 0.1  # of the MRR on validation
MAX_SECONDS = 40 * 60


class Measurement(Record):
    """What a training did on a data set."""

    facts: dict[str, int]  # by split
    entities: int
    relations: int
    total: Comparison
    arities: dict[str, Comparison]
    best_valid_mrr: float
    epochs: int
    fall: float  # the largest fall of the MRR on validation after epoch 5
    seconds: float  # of the call of train
    cpu_seconds: float
    settings: dict[str, Any]  # those of the run: what train chose where nothing was given

    @property
    def judged_arities(self) -> dict[str, Comparison]:
        """The arities with enough questions."""
        judged = self.arities.items()
        return {arity: part for arity, part in judged if part.questions >= MIN_QUESTIONS}

    @property
    def arities_below(self) -> list[str]:
        """The arities on which the model is below the better baseline."""
        return [arity for arity, part in self.judged_arities.items() if part.is_below]


class Result(Record):
    """A training and its measurement, or the error that it ended with."""

    label: str
    split: str
    data: str
    seed: int
    commit: str | None
    machine: dict[str, Any]
    error: str | None = None
    measured: Measurement | None = None

    @property
    def key(self) -> str:
        """The name of the result in the file."""
        return result_key(self.label, self.split, self.data, self.seed)

    def failures(self) -> list[str]:
        """Name the conditions that do not hold."""
        if self.measured is None:
            return ["error"]

        measured = self.measured
        total = measured.total
        is_required = total.must_be_above and self.data not in ONLY_COUNTS
        conditions = {
            "below": total.is_below,
            "not above": is_required and not total.is_above and not total.is_below,
            "arity below": bool(measured.arities_below),
            "fall": measured.fall > MAX_FALL,
            "slow": measured.seconds > MAX_SECONDS,
        }
        return [name for name, is_failed in conditions.items() if is_failed]


def result_key(label: str, split: str, data: str, seed: int) -> str:
    """Return the name of a result."""
    return f"{label}, {split}, {data}, seed {seed}"


def read_results(path: Path = RESULTS) -> dict[str, Result]:
    """Read the results so far."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {key: Result.model_validate(value) for key, value in stored.items()}


def add_result(result: Result, path: Path = RESULTS) -> None:
    """Add a result to the file, a line each; another process may do so at the same time."""
    with _locked(path.parent):
        results = read_results(path) | {result.key: result}
        lines = []
        for key, value in sorted(results.items()):
            lines.append(f"{json.dumps(key)}: {json.dumps(value.as_dict())}")
        with atomic_path(path) as temporary:
            temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

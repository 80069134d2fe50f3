"""The kinds of targets, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz import inputs, runs
from tests.fuzz.case import Case

Cases = Callable[[int, Path, int], Iterator[Case]]

TARGETS: dict[str, Cases] = {"inputs": inputs.cases, "runs": runs.cases}

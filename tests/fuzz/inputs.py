"""Damaged input files: facts in every form, questions, configs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

from tests.fuzz.case import Case, Outcome
from tests.fuzz.command import run_getd


def cases(seed: int, shared: Path, start: int = 0) -> Iterator[Case]:
    """Case ``i`` depends on the seed and ``i`` alone."""
    for number in count(start):
        yield _case(Random(f"{seed}/{number}"), f"inputs-{number}")


def _case(random: Random, name: str) -> Case:
    data = random.randbytes(random.randrange(50))

    def make(folder: Path) -> None:
        (folder / "facts.txt").write_bytes(data)

    def run(folder: Path) -> Outcome:
        return run_getd("info", folder / "facts.txt")

    return Case(name, make, run)

"""A search whose time is counted in batches, for tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training.callbacks import Callbacks, Epoch
from getd.workflows import budget as workflow
from getd.workflows.competition import SearchCallbacks, Standings

SMALL: dict[str, Any] = {
    "model": {"name": "n-cp", "entity_dim": 4},
    "training": {"epochs": 8, "batch_size": 32, "threads": 1, "patience": 0, "seed": 0},
}
BATCHES = 4  # of an epoch of the tiny data


class World:
    """A clock that batches alone advance, and a record of what was trained."""

    def __init__(self, seconds: float = 1.0, **slow: float) -> None:
        self.now = 0.0
        self.seconds = seconds  # of a batch
        self.slow = slow  # candidates that take longer
        self.batches: Counter[str] = Counter()
        self.begun: list[tuple[str, int]] = []
        self.standings: list[Standings] = []
        self.interrupt_after = 0  # trainings

    def __call__(self) -> float:
        return self.now

    def callbacks(self) -> SearchCallbacks:
        return SearchCallbacks(self.on_training, self.standings.append)

    def on_training(self, name: str, epoch: int) -> Callbacks:
        self.begun.append((name, epoch))

        def on_batch(epoch: int, done: int, total: int) -> None:
            self.batches[name] += 1
            self.now += self.slow.get(name, self.seconds)

        def on_epoch(epoch: Epoch) -> None:
            if len(self.begun) == self.interrupt_after:
                raise KeyboardInterrupt

        return Callbacks(on_batch, on_epoch)


def search(kb: KnowledgeBase, out: Path, minutes: float, world: World, **options: Any) -> OpenedRun:
    config = Config.parse(options.pop("config", SMALL))
    callbacks = world.callbacks()
    return workflow.search(kb, config, out, minutes, callbacks=callbacks, clock=world, **options)


def record_of(out: Path) -> dict[str, Any]:
    return RunFolder(out).read_json("budget.json")


def by_name(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {candidate["name"]: candidate for candidate in record["candidates"]}

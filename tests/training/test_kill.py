"""``kill -9`` at any moment, then ``--resume``: the run is as if nothing had happened."""

from __future__ import annotations

import random
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from getd.io.atomic import clear_abandoned
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.training.checkpoint import read_head
from tests.training.killing import LONG, Kill, end, outcome, start, train_whole

MODEL = {
    "name": "getd",
    "entity_dim": 4,
    "ring_ranks": 2,
    "entity_dropout": 0.1,
    "query_dropout": 0.1,
}
TRAINING = {"epochs": 4, "batch_size": 16, "learning_rate": 0.01, "threads": 1, "patience": 0}
REGIMES: dict[str, dict[str, Any]] = {
    "1vsall, ema, memory": {"regime": "1vsall", "ema": 0.9, "memory": True},
    "kvsall, ema": {"regime": "kvsall", "ema": 0.9},
    "kvsall, memory": {"regime": "kvsall", "memory": True},
    "sampled, hard negatives, ema, memory": {
        "regime": "sampled", "hard_negatives": 3, "shared_negatives": False, "ema": 0.9,
        "memory": True,
    },
    "sampled, adagrad": {"regime": "sampled", "optimizer": "adagrad", "negatives": 8},
}  # fmt: skip


def config(memory: bool = False, **training: Any) -> dict[str, Any]:
    return {"model": MODEL, "memory": {"use": memory}, "training": {**TRAINING, **training}}


def test_killed_at_four_moments_a_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    settings, run = config(ema=0.9, memory=True, epochs=3), tmp_path / "run"
    train_whole(tmp_path / "whole", settings)
    for kill in (Kill(8, "batch"), Kill(2, "checkpoint"), Kill(4, "replace"), Kill(1, "weights")):
        assert end(start(run, settings, kill)) == -signal.SIGKILL
        check_readable(RunFolder(run))
    assert list(run.rglob(".*"))  # the lock, and what was being written
    assert end(start(run, settings)) == 0
    assert outcome(run) == outcome(tmp_path / "whole")


def test_a_run_that_was_being_begun_or_replaced_is_there_as_it_was(tmp_path: Path) -> None:
    """Between two renames there is no run: the next process that writes next to it restores it."""
    run, settings = tmp_path / "run", config(epochs=1)
    assert end(start(run, settings, Kill(3, "fsync"))) == -signal.SIGKILL
    assert not run.exists()
    train_whole(run, settings)
    before = outcome(run)
    assert end(start(run, config(epochs=2), Kill(2, "rename"), overwrite=True)) == -signal.SIGKILL
    assert not run.exists()
    clear_abandoned(tmp_path)
    with owned(run):
        pass  # it clears the lock that was left
    assert outcome(run) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.events"]


@pytest.mark.slow
def test_killed_at_sixty_random_moments_trainings_end_as_if_they_had_not_been(
    tmp_path: Path,
) -> None:
    """Half of the kills are at events, which are dense while files are written, half timed."""
    train_whole(tmp_path / "first", config(epochs=1))  # imports what all need
    whole: dict[str, Path] = {}
    took: dict[str, tuple[int, float]] = {}  # events and seconds
    for number, (name, settings) in enumerate(REGIMES.items()):
        begin = time.monotonic()
        whole[name] = tmp_path / f"whole-{number}"
        took[name] = train_whole(whole[name], config(**settings)), time.monotonic() - begin

    chance, attempts, kills = random.Random(0), 0, 0
    for number in count():
        name = list(REGIMES)[number % len(REGIMES)]
        run, (events, seconds) = tmp_path / f"run-{number}", took[name]
        code = None
        while code != 0:
            by_clock = attempts % 2 == 0
            kill = None if by_clock else Kill(chance.randint(1, events // 2))
            code = end(
                start(run, config(**REGIMES[name]), kill),
                seconds * chance.random() if by_clock else LONG,
            )
            assert code in (0, -signal.SIGKILL)
            attempts += 1
            kills += code != 0
            check_readable(RunFolder(run))
        assert outcome(run) == outcome(whole[name])
        if kills >= 60 and number + 1 >= len(REGIMES):
            break
    print(f"{kills} kills, {number + 1} runs")  # noqa: T201


def check_readable(run: RunFolder) -> None:
    """Every file of a run that was killed can be read."""
    if not run.path.exists():
        return
    run.read_config()
    run.read_knowledge_base()
    run.read_history()
    if run.checkpoint.exists():
        read_head(run.checkpoint)
    for path in run.path.glob("*.json"):
        run.read_json(path.name)
    if run.is_finished():
        run.read_weights()

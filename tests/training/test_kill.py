"""``kill -9`` at any moment, then ``--resume``: the run is what it would have been, and nothing is left behind."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from getd.facts.files import clear_abandoned
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.training.checkpoint import read_head
from tests.training.killing import Kill, end, outcome, start, train_whole

MODEL = {"name": "getd", "entity_dim": 4, "ring_ranks": 2, "entity_dropout": 0.1, "query_dropout": 0.1}
TRAINING = {"epochs": 4, "batch_size": 16, "learning_rate": 0.01, "threads": 1, "patience": 0}
REGIMES: dict[str, dict[str, Any]] = {
    "1vsall, ema, memory": {"regime": "1vsall", "ema": 0.9, "memory": True},
    "kvsall, ema": {"regime": "kvsall", "ema": 0.9},
    "kvsall, memory": {"regime": "kvsall", "memory": True},
    "sampled, hard negatives, ema, memory": {
        "regime": "sampled", "hard_negatives": 3, "shared_negatives": False, "ema": 0.9, "memory": True
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
    """Between two renames there is neither the old one nor the new one: who next writes beside it puts it back."""
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
def test_killed_at_sixty_random_moments_trainings_end_as_if_they_had_not_been(tmp_path: Path) -> None:
    """Half of the kills are at events, which are dense where files are written, half by the clock."""
    chance, kills, rounds = random.Random(0), 0, 0
    whole = {name: tmp_path / f"whole-{number}" for number, name in enumerate(REGIMES)}
    took = {}
    for name, path in whole.items():
        begin = time.monotonic()
        took[name] = train_whole(path, config(**REGIMES[name])), time.monotonic() - begin
    while kills < 60 or rounds % len(REGIMES):
        name = list(REGIMES)[rounds % len(REGIMES)]
        run, (events, seconds) = tmp_path / f"run-{rounds}", took[name]
        while True:
            if kills % 2:
                code = end(start(run, config(**REGIMES[name]), Kill(chance.randint(1, events // 3))))
            else:
                code = end(start(run, config(**REGIMES[name])), seconds * chance.uniform(0.2, 1.1))
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
            check_readable(RunFolder(run))
        assert outcome(run) == outcome(whole[name])
        rounds += 1
    print(f"{kills} kills, {rounds} runs")  # noqa: T201


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

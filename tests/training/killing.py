"""Trainings that are killed with ``SIGKILL``: by the clock, at a batch, or while a file is written.

They are forked from a server that has imported everything, so that many of them are cheap. So are
other processes that tests start with ``CONTEXT``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

import getd
from getd.runs import folder as run_folder
from getd.training import checkpoint
from getd.training.callbacks import Callbacks
from tests.tiny import tiny_knowledge_base

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *(__name__, "getd.training.start", "getd.plots.run_pictures", "getd.tuning.study"),
        "torch._dynamo",
    ]
)
LONG = 600.0  # seconds after which a training hangs
FILES = (
    "weights.safetensors",
    "memory.json",
    "calibration.json",
    "report.json",
)  # what kills must not change


@dataclass(frozen=True)
class Kill:
    """A moment: that so many events, of a kind or of any, have happened."""

    number: int
    kind: str | None = None  # batch, fsync, rename, replace, checkpoint, weights


class Events:
    """Counts what a training does, and kills it at its moment."""

    def __init__(self, kill: Kill | None) -> None:
        self.number, self.kill = 0, kill
        self._left = kill.number if kill else 0

    def happen(self, kind: str, before_death: Callable[[], None] = lambda: None) -> None:
        """An event; ``before_death`` does what a kill at this very moment would leave."""
        self.number += 1
        if self.kill and self.kill.kind in (None, kind):
            self._left -= 1
            if self._left == 0:
                before_death()
                os.kill(os.getpid(), signal.SIGKILL)

    def watch_files(self) -> None:
        """Make events of the steps of writing a file: half written, synced, renamed."""
        for name in ("fsync", "rename", "replace"):
            setattr(os, name, self._before(name, getattr(os, name)))
        checkpoint.save_file = self._torn("checkpoint")  # type: ignore[attr-defined]
        run_folder.save_file = self._torn("weights")  # type: ignore[attr-defined]

    def _before(self, kind: str, function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            self.happen(kind)
            function(*arguments)

        return call

    def _torn(self, kind: str) -> Callable[..., None]:
        def save(tensors: Any, path: Path, metadata: Any = None) -> None:
            save_file(tensors, path, metadata)
            self.happen(kind, lambda: os.truncate(path, path.stat().st_size // 2))

        return save


def train(out: Path, config: Mapping[str, Any], kill: Kill | None, overwrite: bool) -> None:
    """Start or resume a training; write the number of events to a file next to the run."""
    events = Events(kill)
    events.watch_files()
    callbacks = Callbacks(on_batch=lambda *_: events.happen("batch"))
    kb = tiny_knowledge_base()
    getd.train(
        kb, out=out, config=config, resume=not overwrite, overwrite=overwrite, callbacks=callbacks
    )
    out.with_suffix(".events").write_text(str(events.number))


def start(
    out: Path, config: Mapping[str, Any], kill: Kill | None = None, overwrite: bool = False
) -> BaseProcess:
    """A training in a process of its own."""
    process = CONTEXT.Process(target=train, args=(out, config, kill, overwrite))
    process.start()
    return process


def end(process: BaseProcess, seconds: float = LONG) -> int | None:
    """Wait for a training, kill it when the time is over; its exit code."""
    try:
        process.join(seconds)
    finally:
        process.kill()
        process.join()
    return process.exitcode


def train_whole(out: Path, config: Mapping[str, Any]) -> int:
    """Train without a kill; how many events there were."""
    assert end(start(out, config)) == 0
    return int(out.with_suffix(".events").read_text())


def outcome(run: Path) -> dict[str, object]:
    """What must be the same however often a training was killed."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    kept: dict[str, object] = {
        name: (run / name).read_bytes() for name in FILES if (run / name).exists()
    }
    kept["history"] = [
        {key: value for key, value in line.items() if key != "seconds"} for line in history
    ]
    kept["names"] = sorted(path.name for path in run.rglob("*"))
    return kept

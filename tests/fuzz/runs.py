"""Damaged run folders: one file of a trained run is bent, cut, swapped or lost, and a command opens
or resumes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import getd
from getd.training.callbacks import Callbacks, Interrupted
from tests.fuzz.case import Case, Outcome
from tests.fuzz.command import run_getd
from tests.fuzz.damage import damage_file
from tests.tiny import tiny_knowledge_base

EPOCHS = 2
SETTINGS: dict[str, dict[str, Any]] = {  # the trained runs that are damaged, by name
    "whole": {"regime": "1vsall", "ema": 0.9, "memory": True},
    "sampled": {
        "regime": "sampled",
        "hard_negatives": 3,
        "shared_negatives": False,
        "optimizer": "adagrad",
    },
    "begun": {"regime": "kvsall", "ema": 0.5},
}
COMBINED = "combined"  # the two that are finished, as one
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("evaluate", "{run}", "--split", "valid", "--json"),
    ("predict", "{run}", "plays for", "player 1", "?", "--why"),
    ("predict", "{run}", "?", "player 1", "club 2"),
    ("score", "{run}", "{facts}"),
    ("score", "{run}", "--suspicious", "3"),
    ("export", "{run}", "--out", "{out}", "--to", "npz"),
    ("extend", "{run}", "{facts}", "--out", "{out}"),
    ("complete", "{run}", "--relation", "plays for", "--out", "{out}.tsv"),
    ("remember", "{run}", "--sample", "5"),
    ("combine", "{run}", "{other}", "--out", "{out}", "--sample", "5"),
    ("calibrate", "{run}", "--sample", "5"),
    *[
        (
            "train",
            "--resume",
            "--out",
            "{run}",
            "--quiet",
            "--json",
            "--set",
            f"training.epochs={EPOCHS + 1}",
        )
    ]
    * 6,
)


def cases(seed: int, shared: Path, start: int = 0) -> Iterator[Case]:
    """Case ``i`` depends on the seed and ``i`` alone."""
    for name in SETTINGS:
        if not (shared / name).exists():
            train_run(shared / name, SETTINGS[name], stop=name == "begun")
    if not (shared / COMBINED).exists():
        getd.combine([shared / "whole", shared / "sampled"], shared / COMBINED)
    for number in count(start):
        yield _case(Random(f"{seed}/{number}"), f"runs-{number}", shared)


def _case(random: Random, name: str, shared: Path) -> Case:
    template = shared / random.choice([*SETTINGS, COMBINED])
    command = random.choice(COMMANDS)
    choices = random.getrandbits(64)

    def make(folder: Path) -> None:
        shutil.copytree(template, folder / "run")
        (folder / "facts.tsv").write_text(
            "plays for\tplayer 1\tclub 3\nplays for\tplayer 99\tclub 1\n"
        )
        damage(folder / "run", shared, Random(choices))

    def run(folder: Path) -> Outcome:
        paths = {
            "run": folder / "run",
            "other": shared / "sampled",
            "facts": folder / "facts.tsv",
            "out": folder / "out",
        }
        return run_getd(*(part.format(**paths) for part in command))

    return Case(name, make, run)


def damage(run: Path, shared: Path, random: Random) -> None:
    """Damage a file of a run, sometimes two."""
    for _ in range(random.choice((1, 1, 1, 2))):
        files = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix != ".svg")
        others = sorted(
            path for path in shared.rglob("*") if path.is_file() and path.suffix != ".svg"
        )
        damage_file(random.choice(files), random.choice(others), random)


def train_run(out: Path, settings: dict[str, Any], stop: bool) -> None:
    """A tiny run; with ``stop`` one that was interrupted in its second epoch."""
    training = {"epochs": EPOCHS, "batch_size": 16, "threads": 1, "patience": 0} | settings
    config = {
        "model": {"name": "getd", "entity_dim": 4, "ring_ranks": 2, "entity_dropout": 0.1},
        "memory": {"use": training.pop("memory", False)},
        "training": training,
    }
    epochs: list[int] = []
    callbacks = Callbacks(
        on_epoch=lambda epoch: epochs.append(epoch.epoch), should_stop=lambda: stop and bool(epochs)
    )
    try:
        getd.train(tiny_knowledge_base(), out=out, config=config, callbacks=callbacks)
    except Interrupted:
        assert stop

"""A reader of one optimiser step needs few files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import getd
from getd.runs.config import Config
from getd.training.regimes.base import shuffled_batches
from getd.training.start import trainer_of
from tests.tiny import tiny_knowledge_base

ROOT = Path(getd.__file__).parent
MAX_FILES = 12


def test_one_step_of_getd_enters_at_most_twelve_files() -> None:
    """In the regime 1vsall, from a batch of rows to changed weights."""
    files: set[str] = set()

    def note_file(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            files.add(str(path.relative_to(ROOT)))

    kb = tiny_knowledge_base()
    config = Config.parse({"model": {"name": "getd", "norm": "batch"}})
    with trainer_of(kb, config) as trainer:
        assert trainer.settings.regime == "1vsall"
        first, second, *_ = shuffled_batches(trainer.regime.sizes, 16, trainer.generator)
        trainer.model.train()
        trainer.step(trainer.regime.prepare(first))  # fills caches

        before = sys.getprofile()
        sys.setprofile(note_file)
        try:
            trainer.step(trainer.regime.prepare(second))
        finally:
            sys.setprofile(before)

    assert {"training/loop.py", "models/getd.py", "algebra/ring.py"} <= files
    assert len(files) <= MAX_FILES, sorted(files)

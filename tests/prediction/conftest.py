"""Runs that several tests of predictions share."""

from __future__ import annotations

import pytest

import getd
from getd.calibration.calibrate import Calibration
from getd.calibration.confidence import Confidence
from getd.facts.knowledge_base import KnowledgeBase
from getd.run import Run
from getd.runs.opened import OpenedRun


@pytest.fixture(scope="session")
def demo_run(trained_demo: OpenedRun) -> Run:
    return Run(trained_demo)


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = {
        "model": {"entity_dim": 8, "ring_ranks": 4},
        "training": {"epochs": 3, "learning_rate": 0.02, "threads": 1},
    }
    return getd.train(getd.load("demo"), out=tmp_path_factory.mktemp("run") / "demo", config=config)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two relations over nine entities."""
    facts = [("r", f"e{i}", f"e{(i + 1) % 9}", f"e{(i * i) % 9}") for i in range(9)]
    facts += [("s", f"e{i}", f"e{(2 * i) % 9}", f"e{j}") for i in range(9) for j in (1, 4)]
    kb = KnowledgeBase.from_facts({"train": facts[:20], "valid": facts[20:24], "test": facts[24:]})
    config = {"model": {"entity_dim": 6, "ring_ranks": 3}, "training": {"epochs": 4, "threads": 1}}
    return getd.train(kb, out=tmp_path_factory.mktemp("small") / "run", config=config)


@pytest.fixture(scope="session")
def calibrated(small: Run) -> Run:
    """The small run with a calibration of our own."""
    curve = Confidence(slope=1.5, fit_slope=0.5, intercept=3.0)
    calibration = Calibration(temperature={"3": 0.8}, confidence={"3": curve})
    return Run(OpenedRun(small.folder, small.kb, small.model, calibration))

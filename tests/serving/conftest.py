"""A run to serve, trained for a moment."""

from __future__ import annotations

import pytest

import getd
from getd.runs.opened import OpenedRun


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    config = {"model": {"entity_dim": 8, "ring_ranks": 4}, "training": {"epochs": 3, "threads": 1}}
    out = tmp_path_factory.mktemp("serving") / "demo"
    return getd.train(getd.load("demo"), out=out, config=config).opened

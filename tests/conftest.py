"""What tests share: the real data where it is, and the command line as a function."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from getd.cli.app import main

if TYPE_CHECKING:
    from getd.runs.folder import RunFolder
    from getd.runs.opened import OpenedRun

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # tests run side by side: a thread each, here and in what they start

settings.register_profile(
    "getd", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("getd")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run what takes minutes too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: --slow runs it"))


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def getd(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command of getd in this process."""

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capfd.readouterr())

    return run


DrawPictures = Callable[["RunFolder"], None]


@pytest.fixture(scope="session", autouse=True)
def draw_pictures() -> Iterator[DrawPictures]:
    """Trainings build the figures of their run and do not render them; yields what renders them.

    Matplotlib takes longer to render two figures than a tiny model takes to train.
    """
    from getd import api

    draw = api._draw_pictures
    with patch.object(api, "_draw_pictures", partial(draw_unrendered, draw)):
        yield draw


def draw_unrendered(draw: DrawPictures, folder: RunFolder) -> None:
    """Draw the pictures of a run up to the last step, which leaves empty files."""
    if find_spec("matplotlib") is None:
        draw(folder)
        return

    def leave_empty(_: object, path: Path, **given: object) -> None:
        path.touch()

    with patch("matplotlib.figure.Figure.savefig", leave_empty):
        draw(folder)


@pytest.fixture
def rendered_pictures(draw_pictures: DrawPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures of runs are rendered, as they are for users."""
    monkeypatch.setattr("getd.api._draw_pictures", draw_pictures)


@pytest.fixture(scope="session")
def trained_demo(tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    """The model of ``getd demo``, to be read only: one of all processes trains it."""
    from getd.runs.opened import open_run
    from getd.workflows.demo import train_demo

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained-demo"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "finished").exists():
            return open_run(folder / "demo")
        run = train_demo(folder / "demo")
        (folder / "finished").touch()
        return run


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The tests of a file run in one process, so that what they share is made once; unless
    ``--dist`` says otherwise.
    """
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real data sets."""
    if not os.environ.get("GETD_DATA"):
        pytest.skip("GETD_DATA is not set: the real data sets are not here")
    return Path(os.environ["GETD_DATA"])


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads or fills the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test prints does not depend on the terminal that the tests were started from."""
    for name in (
        "COLUMNS",
        "FORCE_COLOR",
        "LINES",
        "NO_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
    ):
        monkeypatch.delenv(name, raising=False)

"""Memory and calibration belong to the model that they were fitted to."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

import getd
from getd.api import open_run
from getd.calibration.calibrate import Calibration
from getd.cli.app import main
from getd.errors import WriteError
from getd.runs.folder import RunFolder
from tests.combined import combined_run
from tests.tiny import tiny_knowledge_base

CONFIG = {
    "model": {"name": "n-cp", "entity_dim": 4},
    "training": {"epochs": 1, "batch_size": 32, "threads": 1},
}


@pytest.fixture(scope="module", params=["trained", "combined"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "run"
    if request.param == "combined":
        return combined_run(out).path
    run = getd.train(tiny_knowledge_base(), out=out, config=CONFIG)
    run.remember()
    return run.path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def other_weights(run: Path) -> None:
    folder = RunFolder(run)
    folder.write_weights({name: 2 * tensor for name, tensor in folder.read_weights().items()})


def drop_fitted_to(run: Path) -> None:
    """As files were before they said what they were fitted to."""
    for name in ("memory.json", "calibration.json"):
        value = json.loads((run / name).read_text())
        del value["fitted_to"]
        (run / name).write_text(json.dumps(value))


def test_what_was_fitted_to_other_weights_is_not_used_and_said_so(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert open_run(run).notices == ()
    other_weights(run)
    opened = open_run(run)
    notices = [
        f"{run}/{name} was fitted to another model and is not used; getd {command} {run} fits it"
        for name, command in (("memory.json", "remember"), ("calibration.json", "calibrate"))
    ]
    assert opened.model is opened.model.bare
    assert opened.calibration == Calibration()
    assert list(opened.notices) == notices
    assert main(["evaluate", str(run), "--json"]) == 0
    assert capfd.readouterr().err.splitlines() == [f"note: {line}" for line in notices]
    assert main(["remember", str(run), "--json"]) == 0
    assert open_run(run).notices == ()


def test_files_that_do_not_say_what_they_were_fitted_to_are_used(run: Path) -> None:
    expected = open_run(run)
    drop_fitted_to(run)
    opened = open_run(run)
    assert opened.notices == ()
    assert opened.calibration == expected.calibration != Calibration()
    assert opened.model is not opened.model.bare


def test_a_calibration_without_the_memory_is_not_that_with_it(run: Path) -> None:
    assert open_run(run, memory=False).calibration == Calibration()
    open_run(run, memory=False).calibrate()
    assert open_run(run, memory=False).calibration != Calibration()
    assert open_run(run).calibration == Calibration()
    assert len(open_run(run).notices) == 1


@pytest.mark.parametrize(
    ("method", "written"), [("remember", 0), ("remember", 1), ("calibrate", 0)]
)
def test_a_full_disk_loses_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, method: str, written: int
) -> None:
    drop_fitted_to(run)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    fsync = os.fsync
    left = written

    def fail(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match=r"^cannot write .*\.json: No space left on device$"):
        getattr(open_run(run), method)()
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


def test_a_run_that_was_extended_keeps_what_was_fitted(run: Path, tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("plays for\tplayer 99\tclub 1\n")
    command = ["extend", str(run), str(tmp_path / "facts.tsv"), "--out", str(tmp_path / "larger")]
    assert main(command) == 0
    larger = open_run(tmp_path / "larger")
    opened = open_run(run)
    assert larger.notices == ()
    assert larger.calibration == opened.calibration
    assert larger.model is not larger.model.bare

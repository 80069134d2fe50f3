"""One process at a time writes in a run folder; readers never wait."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import getd
from getd.api import open_run
from getd.cli.app import main
from getd.errors import RunError, RunInUse, WriteError
from getd.io import atomic as files
from getd.io.environment import environment
from getd.run import Run
from getd.runs.lock import LOCK, owned
from getd.training import start
from getd.training.callbacks import Callbacks
from tests.tiny import tiny_knowledge_base

CONFIG: dict[str, Any] = {
    "model": {"name": "n-cp", "entity_dim": 4},
    "training": {"epochs": 1, "batch_size": 32, "threads": 1},
}
HOLD = """
import sys
from pathlib import Path
from getd.runs.lock import owned

with owned(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return getd.train(tiny_knowledge_base(), out=tmp_path / "run", config=CONFIG)


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process owns the folder."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_every_writer_is_refused_in_one_line_that_names_the_first_and_readers_are_not(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    train = ["train", "--out", str(run.path), "--quiet"]
    with held_elsewhere(run.path) as process:
        host = re.escape(socket.gethostname()[:60])
        refused = re.compile(
            rf"{re.escape(str(run.path))} is in use: process {process.pid} on {host} "
            r"\(python\) has been writing in it since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; "
            r"wait until it is done, or choose another folder\n"
        )
        for writing in (
            [*train, "--resume"],
            ["remember", str(run.path)],
            ["calibrate", str(run.path)],
        ):
            assert main(writing) == 1
            assert refused.fullmatch(capfd.readouterr().err)
        for options in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(RunInUse) as caught:
                getd.train(tiny_knowledge_base(), out=run.path, config=CONFIG, **options)
            assert refused.fullmatch(f"{caught.value}\n")
        for reading in (
            ["evaluate", str(run.path)],
            ["export", str(run.path), "--to", "npz", "--out", f"{run.path}-x"],
        ):
            assert main(reading) == 0
    after = {
        path: path.read_bytes()
        for path in run.path.rglob("*")
        if path.is_file() and path.name != LOCK
    }
    assert after == before

    with owned(run.path):  # the first was killed: its lock is gone, though its file is there
        assert json.loads((run.path / LOCK).read_text())["process"] == os.getpid()
    assert not (run.path / LOCK).exists()


def train_elsewhere(out: Path, errors: list[RunError]) -> None:
    """Another training into the same folder, in a thread, to its end."""

    def train() -> None:
        try:
            getd.train(tiny_knowledge_base(), out=out, config=CONFIG)
        except RunError as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()


def test_a_training_that_begins_while_another_is_at_work_is_refused(tmp_path: Path) -> None:
    errors: list[RunError] = []
    callbacks = Callbacks(on_epoch=lambda epoch: train_elsewhere(tmp_path / "run", errors))
    getd.train(tiny_knowledge_base(), out=tmp_path / "run", config=CONFIG, callbacks=callbacks)
    assert [type(error) for error in errors] == [RunInUse]


def test_of_two_that_begin_at_the_same_moment_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[RunError] = []

    def another_comes_first() -> dict[str, Any]:
        monkeypatch.undo()
        train_elsewhere(tmp_path / "run", errors)
        return environment()

    # It is called while the first files are written.
    monkeypatch.setattr(start, "environment", another_comes_first)
    config = {**CONFIG, "model": {"name": "distmult"}}
    message = r"run holds a run already; pass --resume to continue it or --overwrite"
    with pytest.raises(RunError, match=message):
        getd.train(tiny_knowledge_base(), out=tmp_path / "run", config=config)
    assert errors == []
    assert open_run(tmp_path / "run").folder.read_config().model_name == "n-cp"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_owner_may_own_again_and_a_folder_that_is_replaced_is_another(run: Run) -> None:
    with owned(run.path):
        with owned(run.path):
            assert (run.path / LOCK).exists()
        assert (run.path / LOCK).exists()
        getd.train(tiny_knowledge_base(), out=run.path, config=CONFIG, overwrite=True)
        assert not (run.path / LOCK).exists()  # the one that was held is gone with the folder
    assert open_run(run.path).path == run.path


def test_a_lock_that_was_left_alone_in_a_folder_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "run" / f"{files.PREFIX}dead{files.SUFFIX}").mkdir(parents=True)
    (tmp_path / "run" / LOCK).write_text("{}")
    run = getd.train(tiny_knowledge_base(), out=tmp_path / "run", config=CONFIG)
    assert not [path for path in run.path.iterdir() if path.name.startswith(".")]


def test_where_files_cannot_be_locked_nothing_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    (run.path / LOCK).write_text("whatever")
    run.calibrate()
    assert not (run.path / LOCK).exists()


def test_a_folder_that_cannot_be_written_in_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError) as caught:
        run.calibrate()
    assert str(caught.value) == f"cannot write {run.path}: Permission denied"

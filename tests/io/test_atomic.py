"""Files are whole or not there, whatever happens while they are written; nothing else is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from getd.errors import WriteError
from getd.io.atomic import PREFIX, SUFFIX, atomic_path, clear_abandoned, try_lock


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_and_its_folder_are_on_the_disk_around_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def note_rename(source: Path, target: Path) -> None:
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    with atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
        (temporary / "a.txt").write_text("a")
    assert steps == ["sync a.txt", "sync folder", "rename", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    (tmp_path / "a.txt").write_text("before")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(WriteError) as caught, atomic_path(tmp_path / "a.txt") as temporary:
        temporary.write_text("after")
    assert str(caught.value) == f"cannot write {tmp_path / 'a.txt'}: No space left on device"
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "before"


def test_a_folder_whose_successor_cannot_be_put_in_place_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.txt").write_text("before")
    rename = os.rename

    def fail_once(source: Path, target: Path) -> None:
        if "new" in Path(source).parts:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_once)
    with (
        pytest.raises(WriteError, match=r"run: Input/output error$"),
        atomic_path(tmp_path / "run") as temporary,
    ):
        temporary.mkdir()
    assert (tmp_path / "run" / "a.txt").read_text() == "before"
    assert names(tmp_path) == ["run"]


def test_a_folder_that_came_in_the_meantime_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "run"

    def write_slowly() -> None:
        with atomic_path(target, replace=False) as temporary:
            temporary.mkdir()
            (temporary / "a.txt").write_text("mine")
            target.mkdir()
            (target / "a.txt").write_text("theirs")

    with pytest.raises(WriteError) as caught:
        write_slowly()
    assert str(caught.value) == f"{target} exists; choose another place or pass --overwrite"
    assert (target / "a.txt").read_text() == "theirs"
    assert names(tmp_path) == ["run"]


def test_temporary_folders_of_the_dead_are_cleared_those_of_the_living_are_not(
    tmp_path: Path,
) -> None:
    dead, living, foreign = (
        tmp_path / f"{PREFIX}{name}{SUFFIX}" for name in ("dead", "living", "foreign")
    )
    elsewhere = tmp_path / "elsewhere"
    for folder in (dead, living, elsewhere):
        folder.mkdir()
        (folder / "weights").write_text("half of them")
    foreign.symlink_to(elsewhere)
    held = os.open(living, os.O_RDONLY)
    try:
        assert try_lock(held)
        with atomic_path(tmp_path / "a.txt") as temporary:
            temporary.write_text("a")
        assert names(tmp_path) == sorted([living.name, foreign.name, "a.txt", "elsewhere"])
        assert (elsewhere / "weights").exists()
    finally:
        os.close(held)
    clear_abandoned(tmp_path)
    assert not living.exists()

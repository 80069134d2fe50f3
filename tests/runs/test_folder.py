"""The files of a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from getd.runs.folder import RunFolder


def test_a_history_with_a_torn_last_line_is_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append_history({"epoch": 1, "loss": 2.5, "seconds": 1})
    folder.append_history({"epoch": 2, "loss": 1.5, "seconds": 1})
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert [line.epoch for line in folder.read_history()] == [1, 2]
    folder.cut_history(1)
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1, "loss": 2.5, "seconds": 1}\n'


def test_the_config_of_a_run_says_single_values(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    model = {"name": "getd", "entity_dim": 4}
    folder.write_config({"model": model})
    config = folder.read_config()
    assert (config.model_name, config.model_values) == ("getd", {"entity_dim": 4})
    assert (config.validation_sample, config.learns_relations) == (None, False)

    training = {"validation_sample": 30, "relation_loss": 0.1}
    folder.write_config({"model": model, "training": training})
    config = folder.read_config()
    assert (config.validation_sample, config.learns_relations) == (30, True)


def test_json_is_indented_for_people_and_keeps_letters_as_they_are(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_json_files({"a.json": {"town": {"name": "Łódź"}}})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n  "town": {\n    "name": "Łódź"\n  }\n}\n'


def test_files_that_belong_together_are_all_on_the_disk_before_one_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync = os.fsync
    replace = os.replace

    def note_sync(descriptor: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        fsync(descriptor)

    def note_rename(source: Path, target: Path) -> None:
        steps.append(f"rename {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    RunFolder(tmp_path).write_json_files({"a.json": {"a": 1}, "b.json": {"b": 2}})
    before = steps[: min(steps.index("rename a.json"), steps.index("rename b.json"))]
    assert {"sync a.json", "sync b.json"} <= set(before)

"""A run reads back what training wrote, and what is broken is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import getd
from getd.api import open_run
from getd.calibration.calibrate import Calibration
from getd.errors import RunError
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from tests.combined import combined_run


@pytest.fixture(scope="module", params=["trained", "combined"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = {
        "model": {"entity_dim": 8, "ring_ranks": 4},
        "training": {"epochs": 3, "learning_rate": 0.02, "threads": 1},
    }
    out = tmp_path_factory.mktemp("opened") / "demo"
    if request.param == "combined":
        return combined_run(out, getd.load("demo"), memory=False)
    return getd.train(getd.load("demo"), out=out, config=config)


def test_a_run_reads_back_what_was_written(run: Run) -> None:
    again = open_run(run.path)
    assert again.kb.entities == run.kb.entities
    assert again.kb.signatures == run.kb.signatures
    for split, blocks in run.kb.splits.items():
        assert dict(again.kb.splits[split]) == dict(blocks)
    assert {path.name for path in run.path.iterdir()} >= {
        "config.toml",
        "model.json",
        "weights.safetensors",
        "entities.txt",
        "relations.txt",
        "roles.json",
        "facts.parquet",
        "report.json",
        "environment.json",
        *(["combined.json"] if run.folder.is_combined() else ["history.jsonl", "checkpoint"]),
    }


def test_a_folder_that_is_no_run_and_a_broken_run_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        open_run(tmp_path)
    assert str(caught.value) == f"{tmp_path} is not a run: there is no config.toml in it"
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in run.path.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    (copy / "weights.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    message = r"weights\.safetensors: expected weights, found a broken file"
    with pytest.raises(RunError, match=message):
        open_run(copy)
    (copy / "weights.safetensors").unlink()
    with pytest.raises(RunError) as caught:
        open_run(copy)
    assert str(caught.value) == f"{copy} has no weights yet; finish it with --resume"
    (copy / "roles.json").write_text("{")
    with pytest.raises(RunError, match=r"roles\.json: expected JSON, found a broken file"):
        open_run(copy)
    assert 0 < run.evaluate("valid", baselines=False).mrr < 1


@pytest.mark.parametrize(
    "name",
    [
        "config.toml",
        "weights.safetensors",
        "entities.txt",
        "facts.parquet",
        "memory.json",
        "calibration.json",
    ],
)
def test_a_run_that_was_changed_has_another_fingerprint(
    run: Run, name: str, tmp_path: Path
) -> None:
    shutil.copytree(run.path, tmp_path / "copy")
    copy = OpenedRun(RunFolder(tmp_path / "copy"), run.kb, run.model)
    before = copy.fingerprint()
    assert before == run.opened.fingerprint()
    path = tmp_path / "copy" / name
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b" ")
    assert copy.fingerprint() != before


def test_a_run_s_calibration_is_opened_with_it(run: Run, tmp_path: Path) -> None:
    again = open_run(shutil.copytree(run.path, tmp_path / "copy"))
    assert again.calibration == run.calibration != Calibration()
    answers = again.predict("award", ["?", "Oxbow United", "Golden Boot", "2016-17"], top=300)
    assert sum(answer.probability or 0 for answer in answers) == pytest.approx(1)
    assert all(answer.confidence is not None for answer in answers)
    (again.path / "calibration.json").write_text('{"temperature": {"4": -1}, "confidence": {}}')
    message = r"calibration.json: expected a calibration, found another thing"
    with pytest.raises(RunError, match=message):
        open_run(again.path)

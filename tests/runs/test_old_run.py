"""A run folder from version 0.1, before the package was rearranged, still works as it did then.

``old_run`` is n-CP of dimension 4, two epochs on twenty facts. The expected numbers are those of
the version that wrote it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import getd
from getd.calibration.calibrate import Calibration

OLD_RUN = Path(__file__).parent / "old_run"
QUESTION = ("award", ["?", "club 1", "year 1"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(OLD_RUN, tmp_path / "run")


def test_it_opens_and_predicts(folder: Path) -> None:
    run = getd.open_run(folder)
    assert run.notices == ()
    answers = run.predict(*QUESTION, top=3)
    assert [answer.name for answer in answers] == ["player 0", "player 5", "player 2"]
    numbers = [(answer.score, answer.probability, answer.confidence) for answer in answers]
    assert numbers[0] == pytest.approx((0.2420724, 0.1188262, 0.9851138), rel=1e-4)
    assert numbers[2] == pytest.approx((-0.0136036, 0.0920182, 0.6399863), rel=1e-4)


def test_it_is_evaluated_as_its_report_says(folder: Path) -> None:
    run = getd.open_run(folder)
    report = run.folder.read_report()
    assert run.evaluate("test").mrr == pytest.approx(report.metrics.mrr)
    assert report.metrics.mrr == pytest.approx(0.2708333)
    assert (report.best_epoch, report.valid_mrr) == (2, pytest.approx(0.4560354))


def test_it_resumes_as_if_it_had_never_stopped(folder: Path) -> None:
    kb = getd.open_run(folder).kb
    run = getd.train(kb, out=folder, resume=True, epochs=4)
    history = run.folder.read_history()
    losses = [line.loss for line in history]
    assert losses == pytest.approx([2.3855764, 2.3774104, 2.0825788, 1.9414250], rel=1e-4)
    assert [line.valid_mrr for line in history][2:] == pytest.approx([0.4642100, 0.4049242])
    assert run.evaluate("test").mrr == pytest.approx(0.3369444)
    assert [answer.name for answer in run.predict(*QUESTION, top=1)] == ["player 2"]


def test_it_is_calibrated_again_as_it_was(folder: Path) -> None:
    run = getd.open_run(folder)
    before = run.calibration
    run.calibrate()
    assert before.temperature == run.calibration.temperature
    for arity, curve in before.confidence.items():
        again = run.calibration.confidence[arity]
        assert (again.slope, again.fit_slope, again.intercept) == pytest.approx(
            (curve.slope, curve.fit_slope, curve.intercept), rel=1e-4
        )
    assert getd.open_run(folder).calibration == run.calibration != Calibration()

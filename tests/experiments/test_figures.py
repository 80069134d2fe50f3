"""Pictures show the figures of results, each under its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from getd.errors import RunError
from getd.experiments.results_page import _models
from getd.experiments.rows import Row, RowTable
from getd.experiments.tables import measure_table
from getd.plots.figures import _curves, _points, _study, draw
from getd.plots.studies import curves
from getd.tuning.trial import Trial

SERIES = [{"label": "GETD"}, {"label": "n-CP"}]
ROW = Row(
    "figures/size",
    "figure",
    RowTable(about="", x="size", parameters=True, reference="best/a"),
    {"series": SERIES},
)


def result(series: str, x: float, mrr: float, parameters: int) -> dict[str, Any]:
    return {
        "row": ROW.name,
        "series": series,
        "x": x,
        "metrics": {"mrr": mrr},
        "parameters": parameters,
    }


RESULTS = [
    result("GETD", 2, 0.25, 20),
    result("GETD", 2, 0.75, 20),
    result("GETD", 1, 0.125, 10),
    result("n-CP", 1, 0.5, 5),
    {"row": "best/a", "metrics": {"mrr": 0.625}},
]


def lines(axis: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines
    }


def test_points_are_the_means_over_seeds_of_each_series() -> None:
    left, right = _points(ROW, RESULTS[:-1], RESULTS).axes
    assert lines(left) == {
        "GETD": ([1, 2], [0.125, 0.5]),
        "n-CP": ([1], [0.5]),
        "a": ([0, 1], [0.625, 0.625]),
    }
    assert lines(right) == {"GETD": ([1, 2], [10, 20]), "n-CP": ([1], [5])}
    labels = [(axis.get_xlabel(), axis.get_ylabel(), axis.get_yscale()) for axis in (left, right)]
    assert labels == [("size", "test MRR", "linear"), ("size", "parameters", "log")]


def test_curves_are_those_of_each_series() -> None:
    told = {
        "epoch": [1, 2],
        "test_mrr": [0.1, 0.2],
        "test_loss": [4.0, 3.0],
        "train_loss": [2.0, 1.0],
    }
    left, right = _curves(ROW, [{"row": ROW.name, "series": "n-CP", "curves": told}]).axes
    assert lines(left) == {"n-CP": ([1, 2], [0.1, 0.2])}
    assert lines(right) == {"n-CP, test": ([1, 2], [4.0, 3.0]), "n-CP, train": ([1, 2], [2.0, 1.0])}
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in (left, right)] == [
        ("epoch", "test MRR"),
        ("epoch", "loss"),
    ]


def trial(number: int, mrr: float, state: str = "complete") -> Trial:
    return Trial(
        number=number, state=state, values={}, mrr=mrr, curve={1: mrr / 2, 2: mrr}, about={}
    )


def test_a_study_shows_its_trials_and_the_best_so_far() -> None:
    trials = [trial(0, 0.2), trial(1, 0.9, "pruned"), trial(2, 0.1), trial(3, 0.4)]
    told = {"trials": [vars(each) for each in trials], "importances": {"a": 0.25, "b": 0.75}}
    left, right = _study(told).axes
    assert lines(left) == {"best so far": ([0, 1, 2, 3], [0.2, 0.2, 0.2, 0.4])}
    shown = {marks.get_label(): marks.get_offsets().tolist() for marks in left.collections}
    assert shown == {"complete": [[0, 0.2], [2, 0.1], [3, 0.4]], "pruned": [[1, 0.9]]}
    assert (left.get_xlabel(), left.get_ylabel(), right.get_xlabel()) == (
        "trial",
        "validation MRR",
        "importance",
    )
    assert [bar.get_width() for bar in right.patches] == [0.25, 0.75]


def test_the_curve_of_the_best_trial_stands_out() -> None:
    axis, trials = Figure().subplots(), [trial(0, 0.2), trial(1, 0.9), trial(2, 0.1)]
    curves(axis, trials, trials[1])
    assert [line.get_color() for line in axis.lines] == ["gray", "tab:orange", "gray"]
    assert [line.get_ydata()[-1] for line in axis.lines] == [0.2, 0.9, 0.1]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("epoch", "validation MRR")


def test_pictures_are_written_in_two_forms_and_none_without_results(tmp_path: Path) -> None:
    assert draw(ROW, [], tmp_path) == []
    written = draw(ROW, RESULTS, tmp_path)
    assert written == [tmp_path / "figures" / "size.svg", tmp_path / "figures" / "size.png"]
    assert all(path.stat().st_size > 1000 for path in written)


def test_the_page_has_a_line_for_every_model_measured_or_not() -> None:
    shown = _models("JF17K-4", "paper", {})
    assert [
        name for name in ("GETD", "n-TuckER", "n-CP", "RAE", "NaLP") if f"| {name} |" not in shown
    ] == []


def test_costs_need_the_training_that_they_are_of() -> None:
    with pytest.raises(
        RunError, match=r"^cost needs the row paper/getd-wikipeople-3; reproduce that first$"
    ):
        measure_table("cost", [])

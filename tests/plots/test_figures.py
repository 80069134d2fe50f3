"""Figures show every series under its name, each in its own style."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from getd.plots.figures import PointSeries, curves_figure, points_figure
from getd.plots.style import new_figure

SERIES = [
    PointSeries("GETD", {1: 0.125, 2: 0.5}, {1: 10, 2: 20}),
    PointSeries("RAE", {}, {}),
    PointSeries("n-CP", {1: 0.5}, {1: 5}),
]


@dataclass(frozen=True)
class Curve:
    epoch: list[int] = field(default_factory=lambda: [1, 2])
    test_mrr: list[float] = field(default_factory=lambda: [0.1, 0.2])
    test_loss: list[float] = field(default_factory=lambda: [4.0, 3.0])
    train_loss: list[float] = field(default_factory=lambda: [2.0, 1.0])


def lines(axis: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines
    }


def test_points_are_drawn_next_to_the_parameters_and_a_reference() -> None:
    figure = points_figure(SERIES, "size", parameters=True, references={"a": 0.625})
    left, right = figure.axes
    assert lines(left) == {
        "GETD": ([1, 2], [0.125, 0.5]),
        "n-CP": ([1], [0.5]),
        "a": ([0, 1], [0.625, 0.625]),
    }
    assert lines(right) == {"GETD": ([1, 2], [10, 20]), "n-CP": ([1], [5])}
    labels = [(axis.get_xlabel(), axis.get_ylabel(), axis.get_yscale()) for axis in (left, right)]
    assert labels == [("size", "test MRR", "linear"), ("size", "parameters", "log")]


def test_without_parameters_there_is_one_axis() -> None:
    (axis,) = points_figure(SERIES, "size", parameters=False, references={}).axes
    assert list(lines(axis)) == ["GETD", "n-CP"]


def test_a_series_keeps_its_style_whether_others_are_measured_or_not() -> None:
    (axis,) = points_figure(SERIES, "size", parameters=False, references={}).axes
    assert [line.get_color() for line in axis.lines] == ["black", "tab:blue"]
    left, _ = curves_figure({"GETD": [], "n-CP": [Curve()]}).axes
    assert [line.get_color() for line in left.lines] == ["tab:red"]


def test_curves_are_those_of_each_series() -> None:
    left, right = curves_figure({"n-CP": [Curve()]}).axes
    assert lines(left) == {"n-CP": ([1, 2], [0.1, 0.2])}
    assert lines(right) == {"n-CP, test": ([1, 2], [4.0, 3.0]), "n-CP, train": ([1, 2], [2.0, 1.0])}
    labels = [(axis.get_xlabel(), axis.get_ylabel()) for axis in (left, right)]
    assert labels == [("epoch", "test MRR"), ("epoch", "loss")]


def test_the_labels_of_axes_are_within_a_small_picture() -> None:
    figure = new_figure(2.5, 1.5)
    axis = figure.subplots()
    axis.set(xlabel="epoch", ylabel="validation MRR")
    figure.draw_without_rendering()
    for label in (axis.xaxis.label, axis.yaxis.label):
        shown = label.get_window_extent()
        assert (shown.min >= figure.bbox.min).all()
        assert (shown.max <= figure.bbox.max).all()

"""Figures in the paper's arrangement, from results; readable in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from getd.experiments.rows import Row
from getd.io.atomic import atomic_path
from getd.plots.studies import MARKS, bars, history
from getd.tuning.trial import Trial

Results = Sequence[Mapping[str, Any]]
LINES = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "tab:red", "linestyle": "--", "marker": "s"},
    {"color": "tab:blue", "linestyle": ":", "marker": "^"},
    {"color": "tab:green", "linestyle": "-.", "marker": "D"},
)


def draw(row: Row, results: Results, into: Path) -> list[Path]:
    """The pictures of a figure, SVG and PNG; none where nothing is measured yet."""
    mine = [result for result in results if result["row"] == row.name]
    if not mine:
        return []
    if row.kind == "study":
        figure = _study(mine[0])
    else:
        figure = _curves(row, mine) if row.told.curves else _points(row, mine, results)
    written = []
    for form in ("svg", "png"):
        path = into / "figures" / f"{picture_name(row)}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            atomic_path(path) as temporary,
            matplotlib.rc_context({"svg.hashsalt": "getd"}),
        ):  # the same file each time
            figure.savefig(
                temporary, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None
            )
        written.append(path)
    return written


def picture_name(row: Row) -> str:
    """The name of its files: that of the row, ``tuning-`` before that of a study."""
    folder, name = row.name.split("/")
    return f"{folder}-{name}" if row.kind == "study" else name


def _points(row: Row, mine: Results, results: Results) -> Figure:
    """MRR, and parameters where they differ, by what the axis shows."""
    labels = list(dict.fromkeys(series["label"] for series in row.tables["series"]))
    counts = {label: _by_x(mine, label, lambda result: result["parameters"]) for label in labels}
    two = len(labels) > 1 and row.told.parameters
    figure = Figure(figsize=(10 if two else 5.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 2 if two else 1, squeeze=False)[0]
    for label, style in zip(labels, cycle(LINES), strict=False):
        _line(axes[0], _by_x(mine, label, lambda result: result["metrics"]["mrr"]), label, style)
        if two:
            _line(axes[1], counts[label], label, style)
    level = [result["metrics"]["mrr"] for result in results if result["row"] == row.told.reference]
    if level:
        axes[0].axhline(
            mean(level),
            color="gray",
            linestyle="--",
            linewidth=1,
            label=row.told.reference.split("/")[1],
        )
    for axis, name in zip(axes, ("test MRR", "parameters"), strict=False):
        axis.set_xlabel(row.told.x)
        axis.set_ylabel(name)
        axis.legend()
    if two:
        axes[1].set_yscale("log")
    return figure


def _curves(row: Row, mine: Results) -> Figure:
    """MRR by epoch on the left; losses by epoch on the right, of test drawn through, of train faint."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = dict.fromkeys(series["label"] for series in row.tables["series"])
    for label, style in zip(labels, cycle(LINES), strict=False):
        for result in (result for result in mine if result["series"] == label):
            curves, plain = result["curves"], {key: style[key] for key in ("color", "linestyle")}
            left.plot(curves["epoch"], curves["test_mrr"], label=label, **plain)
            right.plot(curves["epoch"], curves["test_loss"], label=f"{label}, test", **plain)
            right.plot(
                curves["epoch"], curves["train_loss"], label=f"{label}, train", alpha=0.4, **plain
            )
    for axis, name in ((left, "test MRR"), (right, "loss")):
        axis.set_xlabel("epoch")
        axis.set_ylabel(name)
        axis.legend()
    return figure


def _study(result: Mapping[str, Any]) -> Figure:
    """Trials in their order on the left, what each setting matters on the right."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    history(
        left,
        [trial for trial in trials_of(result) if trial.state in MARKS and trial.mrr is not None],
    )
    bars(right, result["importances"])
    return figure


def trials_of(result: Mapping[str, Any]) -> list[Trial]:
    """The trials of a study that was kept."""
    return [Trial(**trial) for trial in result["trials"]]


def _by_x(results: Results, label: str, value: Any) -> dict[float, float]:
    found: dict[float, list[float]] = {}
    for result in results:
        if result["series"] == label:
            found.setdefault(result["x"], []).append(value(result))
    return {x: mean(values) for x, values in sorted(found.items())}


def _line(axis: Axes, points: Mapping[float, float], label: str, style: Mapping[str, Any]) -> None:
    if points:
        axis.plot(list(points), list(points.values()), label=label, **style)

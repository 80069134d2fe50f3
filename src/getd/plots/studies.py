"""Trials as pictures, readable in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from getd.tuning.space import Range, Space
from getd.tuning.trial import Trial

MARKS = {"complete": "o", "pruned": "x"}


def history(axis: Axes, trials: Sequence[Trial]) -> None:
    """Trials in their order, and the best so far."""
    axis.set(xlabel="trial", ylabel="validation MRR")
    for state, mark in MARKS.items():
        some = [trial for trial in trials if trial.state == state]
        axis.scatter(
            [t.number for t in some], _mrrs(some), marker=mark, color="black", s=20, label=state
        )
    best, line = 0.0, []
    for trial in trials:
        best = max(best, trial.mrr or 0.0) if trial.state == "complete" else best
        line.append(best)
    begun = [(t.number, value) for t, value in zip(trials, line, strict=True) if value]
    if begun:
        axis.step(*zip(*begun, strict=True), where="post", color="tab:orange", label="best so far")
    axis.legend()


def bars(axis: Axes, importances: Mapping[str, float]) -> None:
    """Settings, the most important on top."""
    axis.set(xlabel="importance")
    ordered = sorted(importances.items(), key=lambda item: item[1])
    axis.barh([name for name, _ in ordered], [value for _, value in ordered], color="tab:blue")


def curves(axis: Axes, trials: Sequence[Trial], best: Trial | None) -> None:
    """The validation curve of every trial."""
    axis.set(xlabel="epoch", ylabel="validation MRR")
    for trial in trials:
        is_best = best is not None and trial.number == best.number
        style: dict[str, Any] = (
            {"color": "tab:orange", "linewidth": 2.5, "zorder": 3}
            if is_best
            else {"color": "gray", "linewidth": 0.7}
        )
        axis.plot(list(trial.curve), list(trial.curve.values()), **style)


def slices(trials: Sequence[Trial], space: Space) -> Figure:
    """The MRR against each setting alone."""
    columns = min(3, len(space))
    rows = -(-len(space) // columns)
    figure = Figure(figsize=(3.3 * columns, 2.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for (name, dimension), axis in zip(space.items(), axes, strict=False):
        for state, mark in MARKS.items():
            some = [trial for trial in trials if trial.state == state and name in trial.values]
            axis.scatter(
                [_place(t.values[name]) for t in some],
                _mrrs(some),
                marker=mark,
                color="black",
                s=14,
            )
        if isinstance(dimension, Range) and dimension.log:
            axis.set_xscale("log")
        axis.set_xlabel(name)
    for axis in axes[len(space) :]:
        axis.set_visible(False)
    return figure


def _place(value: Any) -> float | str:
    return str(value) if isinstance(value, bool | str) else float(value)


def _mrrs(trials: Sequence[Trial]) -> list[float]:
    return [trial.mrr or 0.0 for trial in trials]

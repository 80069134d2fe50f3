"""Figures in the paper's arrangement: one line per series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol

from matplotlib.figure import Figure

from getd.plots.style import LINE_STYLES, WIDE, new_figure, plot_values

ByX = Mapping[float, float]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class PointSeries:
    """The points of one line, by what the x-axis shows; empty where nothing is measured yet."""

    label: str
    mrr: ByX
    parameters: ByX


class LearningCurve(Protocol):
    """Losses and MRR of one training, a value per epoch."""

    epoch: tuple[int, ...]
    train_loss: Numbers
    test_loss: Numbers
    test_mrr: Numbers


def points_figure(
    series: Sequence[PointSeries], x_label: str, parameters: bool, references: Mapping[str, float]
) -> Figure:
    """Draw the MRR by x, on request next to the parameters; references are horizontal lines."""
    n_axes = 2 if parameters else 1
    figure = new_figure(10 if parameters else 5.5, 3.6)
    axes = figure.subplots(1, n_axes, squeeze=False)[0]

    for line, style in zip(series, cycle(LINE_STYLES), strict=False):
        for axis, values in zip(axes, (line.mrr, line.parameters), strict=False):
            if values:
                plot_values(axis, values, label=line.label, **style)

    for label, mrr in references.items():
        axes[0].axhline(mrr, linewidth=1, label=label, color="gray", linestyle="--")

    for axis, name in zip(axes, ("test MRR", "parameters"), strict=False):
        axis.set(xlabel=x_label, ylabel=name)
        axis.legend()
    if parameters:
        axes[1].set_yscale("log")
    return figure


def curves_figure(series: Mapping[str, Sequence[LearningCurve]]) -> Figure:
    """Draw the test MRR by epoch on the left, test and (faint) training losses on the right."""
    figure = new_figure(*WIDE)
    left, right = figure.subplots(1, 2)

    for (label, trainings), line_style in zip(series.items(), cycle(LINE_STYLES), strict=False):
        style = {key: line_style[key] for key in ("color", "linestyle")}
        for curve in trainings:
            left.plot(curve.epoch, curve.test_mrr, label=label, **style)
            right.plot(curve.epoch, curve.test_loss, label=f"{label}, test", **style)
            right.plot(curve.epoch, curve.train_loss, label=f"{label}, train", alpha=0.4, **style)

    for axis, name in ((left, "test MRR"), (right, "loss")):
        axis.set(xlabel="epoch", ylabel=name)
        axis.legend()
    return figure

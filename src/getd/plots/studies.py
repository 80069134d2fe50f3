"""Pictures of the trials of a study."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from getd.plots.style import TRIAL_MARKERS, WIDE, new_figure, plot_values

SINGLE = (9.0, 3.6)  # inches: a picture of one axis


class DrawnTrial(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...
    @property
    def mrr(self) -> float | None: ...
    @property
    def curve(self) -> Mapping[int, float]: ...


Trials = Sequence[DrawnTrial]


def is_drawn(trial: DrawnTrial) -> bool:
    """Whether a trial has anything to draw: it has a measurement, and was completed or pruned."""
    return trial.mrr is not None and trial.state in TRIAL_MARKERS


def history_figure(trials: Trials) -> Figure:
    """Draw the trials in their order, and the best so far."""
    figure = new_figure(*SINGLE)
    _draw_history(figure.subplots(), trials)
    return figure


def importance_figure(importances: Mapping[str, float]) -> Figure:
    """Draw a bar per setting, the most important on top."""
    figure = new_figure(*SINGLE)
    _draw_importances(figure.subplots(), importances)
    return figure


def overview_figure(trials: Trials, importances: Mapping[str, float]) -> Figure:
    """Draw the history on the left, the importance of the settings on the right."""
    figure = new_figure(*WIDE)
    left, right = figure.subplots(1, 2)
    _draw_history(left, trials)
    _draw_importances(right, importances)
    return figure


def curves_figure(trials: Trials, best: DrawnTrial | None) -> Figure:
    """Draw the validation curve of every trial; that of the best stands out."""
    figure = new_figure(*SINGLE)
    axis = figure.subplots()
    axis.set(xlabel="epoch", ylabel="validation MRR")

    for trial in trials:
        style: dict[str, Any] = {"color": "gray", "linewidth": 0.7}
        if trial == best:
            style = {"color": "tab:orange", "linewidth": 2.5, "zorder": 3}
        plot_values(axis, trial.curve, **style)
    return figure


def settings_figure(
    trials: Trials, settings: Sequence[str], logarithmic: Collection[str]
) -> Figure:
    """Draw the MRR against each setting alone; ``logarithmic`` are those on a logarithmic scale."""
    columns = min(3, len(settings))
    rows = -(-len(settings) // columns)
    figure = new_figure(3.3 * columns, 2.6 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)

    for name, axis in zip(settings, axes, strict=False):
        for state, marker in TRIAL_MARKERS.items():
            shown = [trial for trial in trials if trial.state == state and name in trial.values]
            values = [_axis_value(trial.values[name]) for trial in shown]
            axis.scatter(values, _mrrs(shown), marker=marker, color="black", s=14)
        if name in logarithmic:
            axis.set_xscale("log")
        axis.set_xlabel(name)

    for axis in axes[len(settings) :]:
        axis.set_visible(False)
    return figure


def _draw_history(axis: Axes, trials: Trials) -> None:
    axis.set(xlabel="trial", ylabel="validation MRR")
    for state, marker in TRIAL_MARKERS.items():
        shown = [trial for trial in trials if trial.state == state]
        numbers = [trial.number for trial in shown]
        axis.scatter(numbers, _mrrs(shown), marker=marker, color="black", s=20, label=state)

    # The line of the best so far begins with the first trial that was completed.
    best = 0.0
    best_so_far = {}
    for trial in trials:
        if trial.state == "complete":
            best = max(best, trial.mrr or 0.0)
        if best:
            best_so_far[trial.number] = best
    if best_so_far:
        style = {"drawstyle": "steps-post", "color": "tab:orange"}
        plot_values(axis, best_so_far, label="best so far", **style)
    axis.legend()


def _draw_importances(axis: Axes, importances: Mapping[str, float]) -> None:
    axis.set(xlabel="importance")
    names = sorted(importances, key=importances.__getitem__)
    axis.barh(names, [importances[name] for name in names], color="tab:blue")


def _axis_value(value: Any) -> float | str:
    return str(value) if isinstance(value, bool | str) else float(value)


def _mrrs(trials: Trials) -> list[float]:
    return [trial.mrr or 0.0 for trial in trials]

"""Pictures of a study show every trial, and which one is the best."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from getd.plots.studies import curves_figure, is_drawn, overview_figure, settings_figure
from getd.tuning.trial import Trial, TrialStateName


def trial(
    number: int, mrr: float | None, state: TrialStateName = "complete", **values: Any
) -> Trial:
    curve = {} if mrr is None else {1: mrr / 2, 2: mrr}
    return Trial(number, state, values, mrr, curve)


def test_a_study_shows_its_trials_and_the_best_so_far() -> None:
    trials = [trial(0, 0.2), trial(1, 0.9, "pruned"), trial(2, 0.1), trial(3, 0.4)]
    left, right = overview_figure(trials, {"a": 0.75, "b": 0.25}).axes
    (line,) = left.lines
    assert line.get_label() == "best so far"
    assert list(line.get_xdata()) == [0, 1, 2, 3]
    assert list(line.get_ydata()) == [0.2, 0.2, 0.2, 0.4]

    shown = {marks.get_label(): marks.get_offsets().tolist() for marks in left.collections}
    assert shown == {"complete": [[0, 0.2], [2, 0.1], [3, 0.4]], "pruned": [[1, 0.9]]}
    labels = (left.get_xlabel(), left.get_ylabel(), right.get_xlabel())
    assert labels == ("trial", "validation MRR", "importance")
    assert [bar.get_width() for bar in right.patches] == [0.25, 0.75]
    assert [label.get_text() for label in right.get_yticklabels()] == ["b", "a"]


def test_the_best_so_far_begins_with_the_first_complete_trial() -> None:
    trials = [trial(0, 0.9, "pruned"), trial(1, 0.2)]
    left, _ = overview_figure(trials, {}).axes
    assert [list(line.get_xdata()) for line in left.lines] == [[1]]


def test_the_curve_of_the_best_trial_stands_out() -> None:
    trials = [trial(0, 0.2), trial(1, 0.9), trial(2, 0.1)]
    (axis,) = curves_figure(trials, trials[1]).axes
    assert [line.get_color() for line in axis.lines] == ["gray", "tab:orange", "gray"]
    assert [line.get_ydata()[-1] for line in axis.lines] == [0.2, 0.9, 0.1]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("epoch", "validation MRR")


def test_settings_have_an_axis_each_on_their_scale() -> None:
    trials = [trial(0, 0.2, rate=0.1, dim=4), trial(1, 0.4, rate=0.01, dim=8)]
    figure = settings_figure(trials, ["rate", "dim"], {"rate"})
    scales = {axis.get_xlabel(): axis.get_xscale() for axis in figure.axes}
    assert scales == {"rate": "log", "dim": "linear"}
    points = [axis.collections[0].get_offsets().tolist() for axis in figure.axes]
    assert points == [[[0.1, 0.2], [0.01, 0.4]], [[4.0, 0.2], [8.0, 0.4]]]


def test_trials_that_are_running_or_lost_are_not_drawn() -> None:
    assert is_drawn(trial(0, 0.2))
    assert is_drawn(trial(0, 0.2, "pruned"))
    assert not is_drawn(trial(0, None, "pruned"))
    assert not is_drawn(trial(0, 0.2, "running"))
    assert not is_drawn(trial(0, 0.2, "lost"))


def test_drawing_leaves_the_backend_of_a_notebook_alone() -> None:
    code = (
        "import matplotlib; matplotlib.use('svg')\n"
        "from getd.plots import figures, run_pictures, studies, style\n"
        "import sys; assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert matplotlib.get_backend() == 'svg', matplotlib.get_backend()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

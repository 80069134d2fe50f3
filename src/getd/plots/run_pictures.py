"""The pictures of a run: its learning curves, and the reliability of its probabilities."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from getd.io.atomic import atomic_path
from getd.plots.style import new_figure, plot_values
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.runs.records import HistoryLine


def draw_curves(folder: RunFolder) -> None:
    """Draw the learning curves, ``curves.svg``; nothing before the first epoch."""
    history = folder.read_history()
    if not history:
        return
    figure = learning_figure(folder.path.name, history)
    with owned(folder.path), atomic_path(folder.path / "curves.svg") as temporary:
        figure.savefig(temporary, format="svg")


def learning_figure(title: str, history: Sequence[HistoryLine]) -> Figure:
    """Plot the losses and the validation MRR by epoch."""
    figure = new_figure(7, 3.5)
    axis = figure.subplots()
    axis.set(title=title, xlabel="epoch")
    axis.set_ylabel("training loss", color="tab:blue")

    losses = {line.epoch: line.loss for line in history}
    plot_values(axis, losses, color="tab:blue", label="loss")
    held_out = {line.epoch: line.valid_loss for line in history if line.valid_loss is not None}
    if held_out:
        plot_values(axis, held_out, color="tab:blue", ls="--", label="loss on validation")
        axis.legend()

    mrrs = {line.epoch: line.valid_mrr for line in history if line.valid_mrr is not None}
    if mrrs:
        best = max(mrrs, key=mrrs.__getitem__)
        right = axis.twinx()
        plot_values(right, mrrs, color="tab:orange", label="MRR")
        right.plot([best], [mrrs[best]], "o", color="tab:orange", label="best")
        right.set_ylabel("validation MRR", color="tab:orange")
    return figure


def draw_reliability(folder: RunFolder) -> None:
    """Draw how often first answers are right by their probability: ``calibration.svg``."""
    curves = folder.read_json("calibration.json")["valid"]
    figure = new_figure(4.2, 4)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color="gray", linestyle=":", label="as said")

    for name, style in (("before", "rs--"), ("after", "ko-")):
        curve = curves[name]
        label = f"{name}: error {curve['error']:.3f}"
        axis.plot(curve["probability"], curve["right"], style, label=label)

    axis.set(xlabel="probability of the first answer", aspect="equal")
    axis.set_ylabel("share that is right, on validation")
    axis.legend()
    with atomic_path(folder.path / "calibration.svg") as temporary:
        figure.savefig(temporary, format="svg")

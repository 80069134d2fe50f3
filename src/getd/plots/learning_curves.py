"""Learning curves as a picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from getd.io.atomic import atomic_path
from getd.plots.style import new_figure, plot_values
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.runs.records import HistoryLine


def draw(folder: RunFolder) -> Path | None:
    """Draw the curves of a run, ``curves.svg``; None before the first epoch."""
    history = folder.read_history()
    if not history:
        return None
    figure = learning_figure(folder.path.name, history)
    path = folder.path / "curves.svg"
    with owned(folder.path), atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg")
    return path


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

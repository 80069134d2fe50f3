"""Learning curves as a picture."""

from pathlib import Path

from getd.io.atomic import atomic_path
from getd.plots.style import new_figure, plot_values
from getd.runs.folder import RunFolder
from getd.runs.lock import owned


def draw(folder: RunFolder) -> Path | None:
    """Draw loss and validation MRR by epoch, ``curves.svg``; None before the first epoch."""
    history = folder.read_history()
    if not history:
        return None
    figure = new_figure(7, 3.5)
    axis = figure.subplots()
    axis.set(title=folder.path.name, xlabel="epoch")
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
        plot_values(right, mrrs, color="tab:orange")
        right.plot([best], [mrrs[best]], "o", color="tab:orange")
        right.set_ylabel("validation MRR", color="tab:orange")

    path = folder.path / "curves.svg"
    with owned(folder.path), atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg")
    return path

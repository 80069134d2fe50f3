"""Learning curves as a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

from getd.io.atomic import atomic_path
from getd.runs.folder import RunFolder
from getd.runs.lock import owned


def draw(folder: RunFolder) -> Path | None:
    """Loss and validation MRR by epoch, ``curves.svg`` in the run folder; ``None`` where there is no epoch yet."""
    history = folder.read_history()
    if not history:
        return None
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axis = figure.subplots()
    axis.plot(
        [line.epoch for line in history],
        [line.loss for line in history],
        color="tab:blue",
        label="loss",
    )
    held_out = [(line.epoch, line.valid_loss) for line in history if line.valid_loss is not None]
    if held_out:
        axis.plot(
            *zip(*held_out, strict=True),
            color="tab:blue",
            linestyle="--",
            label="loss on validation",
        )
        axis.legend()
    axis.set_xlabel("epoch")
    axis.set_ylabel("training loss", color="tab:blue")
    measured = [(line.epoch, line.valid_mrr) for line in history if line.valid_mrr is not None]
    if measured:
        right = axis.twinx()
        right.plot(*zip(*measured, strict=True), color="tab:orange")
        best_epoch, best_mrr = max(measured, key=lambda point: point[1])
        right.plot([best_epoch], [best_mrr], "o", color="tab:orange")
        right.set_ylabel("validation MRR", color="tab:orange")
    axis.set_title(folder.path.name)
    with owned(folder.path), atomic_path(folder.path / "curves.svg") as temporary:
        figure.savefig(temporary, format="svg")
    return folder.path / "curves.svg"

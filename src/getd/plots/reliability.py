"""The reliability of a run's probabilities as a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

from getd.io.atomic import atomic_path
from getd.runs.folder import RunFolder


def draw(folder: RunFolder) -> Path:
    """How often first answers are right by their probability, before and after calibration: ``calibration.svg``."""
    found = folder.read_json("calibration.json")["valid"]
    figure = Figure(figsize=(4.2, 4), layout="constrained")
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color="gray", linestyle=":", label="as said")
    for name, line in (("before", "rs--"), ("after", "ko-")):
        label = f"{name}: error {found[name]['error']:.3f}"
        axis.plot(found[name]["probability"], found[name]["right"], line, label=label)
    axis.set_xlabel("probability of the first answer")
    axis.set_ylabel("share that is right, on validation")
    axis.set_aspect("equal")
    axis.legend()
    with atomic_path(folder.path / "calibration.svg") as temporary:
        figure.savefig(temporary, format="svg")
    return folder.path / "calibration.svg"

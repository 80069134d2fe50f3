"""The reliability of a run's probabilities as a picture."""

from pathlib import Path

from getd.io.atomic import atomic_path
from getd.plots.style import new_figure
from getd.runs.folder import RunFolder


def draw(folder: RunFolder) -> Path:
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

    path = folder.path / "calibration.svg"
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg")
    return path

"""Line styles and markers, readable in black and white, and how pictures are saved."""

from collections.abc import Mapping
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from getd.io.atomic import atomic_path

LINE_STYLES = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "tab:red", "linestyle": "--", "marker": "s"},
    {"color": "tab:blue", "linestyle": ":", "marker": "^"},
    {"color": "tab:green", "linestyle": "-.", "marker": "D"},
)
TRIAL_MARKERS = {"complete": "o", "pruned": "x"}  # trials in other states are not drawn
METADATA = {"svg": {"Date": None}, "png": None}  # of the files of a picture, by format
WIDE = (10.0, 3.6)  # inches: two axes side by side


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; it belongs to no backend, so that of a notebook stays as it is."""
    return Figure(figsize=(width, height), layout="constrained")


def plot_values(axis: Axes, values: Mapping[Any, float], **style: Any) -> None:
    """Draw a line through values, by what the x-axis shows."""
    axis.plot(list(values), list(values.values()), **style)


def html_figure(figure: Figure, caption: str) -> str:
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]  # without the head of an XML file
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def save_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write ``NAME.svg`` and ``NAME.png``, with the same bytes each time."""
    with matplotlib.rc_context({"svg.hashsalt": "getd"}):
        for form, metadata in METADATA.items():
            with atomic_path(folder / f"{name}.{form}") as temporary:
                figure.savefig(temporary, format=form, dpi=150, metadata=metadata)

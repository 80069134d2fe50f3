"""Results as JSON, as a table on the terminal, as pictures, and as the table of ``README.md``."""

from __future__ import annotations

import json
import resource
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Figure, Plot, Result, Series
from getd.io.atomic import atomic_path
from getd.io.environment import machine_facts

BEGIN, END = "<!-- results: written by python -m benchmarks -->", "<!-- end of results -->"
LINES, MARKERS, HATCHES = (
    ("-", "--", "-.", ":"),
    "os^Dvx*P",
    ("", "///", "...", "xxx", "\\\\\\", "+++"),
)


def to_json(result: Result) -> dict[str, Any]:
    """Return the JSON of a result; called in the process that measured, whose threads count."""
    return {
        "name": result.name,
        "command": f"python -m benchmarks {result.name}",
        "figures": [asdict(figure) | {"holds": figure.holds} for figure in result.figures],
        "details": result.details,
        "peak_memory_mib": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        ),  # of the whole process
        "plots": [asdict(plot) for plot in result.plots],
        "tables": result.tables,
        "machine": machine_facts(*result.packages),
    }


def from_json(values: dict[str, Any]) -> Result:
    """The result that :func:`to_json` wrote."""
    figures = [
        Figure(**{key: figure[key] for key in figure if key != "holds"})
        for figure in values["figures"]
    ]
    plots = [
        Plot(**plot | {"series": [Series(**series) for series in plot["series"]]})
        for plot in values["plots"]
    ]
    packages = tuple(values["machine"]["versions"])
    return Result(
        values["name"], figures, plots, values["details"], packages, values.get("tables", {})
    )


def write(values: dict[str, Any], folder: Path) -> None:
    """Write ``NAME.json`` and, if there is something to draw, ``NAME.svg``."""
    result = from_json(values)
    with atomic_path(folder / f"{result.name}.json") as temporary:
        temporary.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    if result.plots:
        with atomic_path(folder / f"{result.name}.svg") as temporary:
            draw(result.plots, temporary)


def show(result: Result, console: Console, enforced: bool = True) -> None:
    """Every figure with its limit and whether it holds."""
    table = Table(title=f"benchmark {result.name}", title_justify="left")
    for column, justify in {
        "figure": "left",
        "value": "right",
        "unit": "left",
        "limit": "right",
        "": "left",
    }.items():
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for figure in result.figures:
        verdict = (
            ""
            if figure.limit is None or not enforced
            else "holds"
            if figure.holds
            else "[bold red]beyond[/]"
        )
        table.add_row(figure.name, number(figure.value), figure.unit, limit(figure), verdict)
    console.print(table)
    for title, rows in result.tables.items():
        columns = list(next(iter(rows.values())))
        table = Table("", title=title, title_justify="left")
        for column in columns:
            table.add_column(column, justify="right")
        for name, values in rows.items():
            table.add_row(name, *(number(values[column]) for column in columns))
        console.print(table)


def number(value: float) -> str:
    """Three figures that matter, whole numbers in groups of thousands.

    >>> number(1.23456), number(123456.7), number(0.00123)
    ('1.23', '123,457', '0.00123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def limit(figure: Figure) -> str:
    """The limit of a figure as one reads it."""
    return (
        "" if figure.limit is None else f"{'≥' if figure.at_least else '≤'} {number(figure.limit)}"
    )


def draw(plots: list[Plot], path: Path) -> None:
    """The plots of a result under one another, two in a row; to be read without colours, too."""
    columns = min(2, len(plots))
    rows = -(-len(plots) // columns)
    style: dict[Any, Any] = {
        "svg.hashsalt": "getd",
        "font.size": 9,
        "axes.grid": True,
        "grid.linewidth": 0.3,
    }
    with matplotlib.rc_context(style):
        canvas = Canvas(figsize=(5.2 * columns, 3.6 * rows), layout="constrained")
        grid = canvas.subplots(rows, columns, squeeze=False).ravel()
        for plot, axes in zip(plots, grid, strict=False):
            _bars(plot, axes) if plot.x_ticks else _curves(plot, axes)
            axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
            if len(plot.series) > 1:
                axes.legend(fontsize=8)
        for axes in grid[len(plots) :]:
            axes.set_visible(False)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _curves(plot: Plot, axes: Axes) -> None:
    for i, series in enumerate(plot.series):
        line, marker, grey = (
            LINES[i % len(LINES)],
            MARKERS[i % len(MARKERS)],
            str(0.5 * (i % 3) / 2),
        )
        axes.plot(
            series.x,
            series.y,
            line,
            marker=marker,
            color=grey,
            label=series.name,
            markerfacecolor="white",
        )
    if plot.log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(plot.series[0].x, [number(x) for x in plot.series[0].x])
        axes.set_xticks([], minor=True)


def _bars(plot: Plot, axes: Axes) -> None:
    ticks, width = plot.x_ticks or [], 0.8 / len(plot.series)
    for i, series in enumerate(plot.series):
        x = np.array(series.x) + (i - (len(plot.series) - 1) / 2) * width
        shade = str(0.45 + 0.5 * i / max(len(plot.series), 2))
        hatch = HATCHES[i % len(HATCHES)]
        bars = axes.bar(
            x, series.y, width, color=shade, hatch=hatch, edgecolor="black", label=series.name
        )
        axes.bar_label(bars, labels=[number(y) for y in series.y], fontsize=7)
    axes.set_xticks(range(len(ticks)), ticks)
    axes.grid(visible=False, axis="x")


def update_readme(path: Path, folder: Path) -> None:
    """Put the figures of all results and their pictures between the two markers of the page."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    kept = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    parts = [_section(values, folder) for values in kept if "figures" in values]
    with atomic_path(path) as temporary:
        temporary.write_text(f"{before}{BEGIN}\n{''.join(parts)}\n{END}{after}", encoding="utf-8")


def _section(values: dict[str, Any], folder: Path) -> str:
    result, machine = from_json(values), values["machine"]
    lines = ["", f"### {result.name}", "", "| figure | value | limit | |", "|---|---:|---:|---|"]
    for figure in result.figures:
        verdict = "" if figure.limit is None else "holds" if figure.holds else "**beyond**"
        lines.append(
            f"| {figure.name} | {number(figure.value)} {figure.unit} "
            f"| {limit(figure)} | {verdict} |"
        )
    for title, rows in result.tables.items():
        columns = list(next(iter(rows.values())))
        lines += ["", f"| {title} | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
        lines += [
            f"| {name} | {' | '.join(number(values[column]) for column in columns)} |"
            for name, values in rows.items()
        ]
    threads = f", torch on {machine['threads']}" if machine.get("threads") else ""
    versions = ", ".join(f"{package} {version}" for package, version in machine["versions"].items())
    lines += [
        "",
        f"{machine['processor']}, {machine['cores']} cores{threads}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, {versions}. "
        "Peak memory of the benchmark: "
        f"{values['peak_memory_mib']:,} MiB.",
    ]
    if (folder / f"{result.name}.svg").exists():
        lines += ["", f"![{result.name}]({folder.name}/{result.name}.svg)"]
    return "\n".join([*lines, ""])

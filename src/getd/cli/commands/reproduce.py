"""``getd reproduce``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.cli.options import Json
from getd.cli.output import (
    print_json,
    print_line,
    print_message,
    print_notices,
    print_table,
    training_progress,
)
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.experiments.rows import Point, Row
    from getd.training.callbacks import Callbacks


def reproduce(
    *rows: str,
    all: Annotated[bool, Parameter(help="Every row.", negative="")] = False,  # noqa: A002
    seeds: Annotated[int, Parameter(help="How many: 0, 1, …")] = 1,
    budget: Annotated[
        float | None, Parameter(help="Stop after so many minutes; the same command goes on.")
    ] = None,
    into: Annotated[Path, Parameter(help="The folder of results, pictures and their page.")] = Path(
        "experiments"
    ),
    runs: Annotated[Path, Parameter(help="Where run folders are kept.")] = Path("runs"),
    quiet: Annotated[bool, Parameter(help="No progress.", negative="")] = False,
    json: Json = False,
) -> None:
    """Measure rows of the paper's tables and figures again, and put them beside what was published.

    What is measured already is left alone: delete its file to measure it again. What was interrupted goes on.

    Parameters
    ----------
    rows
        Names of rows, or list: every row and what is measured of it; none: only the page is made anew.
    """
    if rows == ("list",):
        list_rows(into, json)
        return
    if not find_spec("matplotlib"):
        raise ConfigError(
            "the pictures of results are drawn with matplotlib: pip install 'getd[plots]'"
        )

    from getd.experiments.measure import Place
    from getd.experiments.measure import reproduce as measure
    from getd.experiments.results_page import write_page
    from getd.experiments.rows import all_rows, find_row
    from getd.training.callbacks import Interrupted

    if seeds < 1:
        raise ConfigError(f"--seeds: expected at least 1, found {seeds}")
    chosen = list(all_rows().values()) if all else [find_row(name) for name in rows]
    place, is_over, written = Place(into, runs), budget_of(budget), []
    try:
        for row in in_order(chosen):
            if not is_over():
                watching = partial(training_of, quiet=quiet, is_over=is_over)
                written += measure(row, list(range(seeds)), place, watching)
    except Interrupted:
        if not is_over():
            raise Interrupted("go on with the same command") from None
        print_notices(["the budget is spent; the same command goes on"])
    page = write_page(into)
    if json:
        print_json({"written": [str(path) for path in written], "page": str(page)})
        return
    for path in written:
        print_line(str(path))
    print_line(str(page))


def in_order(rows: list[Row]) -> list[Row]:
    """Trainings first: claims and cost are made from their results."""
    return sorted(rows, key=lambda row: row.name in ("cost", "claims"))


def list_rows(into: Path, json: bool) -> None:
    """Every row, what it is, what is measured, what a training takes."""
    from getd.experiments.result import read_results
    from getd.experiments.rows import all_rows

    found: dict[str, int] = {}
    for result in read_results(into):
        found[result["row"]] = found.get(result["row"], 0) + 1
    keys = ("row", "about", "results", "minutes")
    rows = [
        [row.name, row.told.about, found.get(row.name, 0), row.told.minutes]
        for row in all_rows().values()
    ]
    if json:
        print_json({"rows": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    print_table("Rows", keys, rows, left=2)


def budget_of(minutes: float | None) -> Callable[[], bool]:
    """Whether the budget is spent."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: end is not None and time.monotonic() > end


@contextmanager
def training_of(point: Point, quiet: bool, is_over: Callable[[], bool]) -> Iterator[Callbacks]:
    """Progress of a training, which stops when the budget is spent."""
    from getd.runs.config import Config

    if not quiet:
        print_message(point.name)
    epochs = Config.parse(point.config).training.epochs
    with training_progress(quiet, epochs) as callbacks:
        yield replace(callbacks, should_stop=is_over)

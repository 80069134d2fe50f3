"""``getd reproduce``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.cli.options import Json, Quiet, flag
from getd.cli.output import print_json, print_line, print_message, print_notices, print_table
from getd.cli.progress import training_progress

if TYPE_CHECKING:
    from getd import Callbacks


def reproduce(
    *rows: Annotated[
        str,
        Parameter(help="Names of rows, or list to show them all. Default: only write the page."),
    ],
    all: Annotated[bool, flag("Measure every row.")] = False,  # noqa: A002
    seeds: Annotated[int, Parameter(help="Number of seeds (0 … N-1).")] = 1,
    budget: Annotated[
        float | None, Parameter(help="Stop after this many minutes; the same command resumes.")
    ] = None,
    into: Annotated[Path, Parameter(help="Folder of results, pictures and their page.")] = Path(
        "experiments"
    ),
    runs: Annotated[Path, Parameter(help="Folder of run folders.")] = Path("runs"),
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Measure rows of the paper's tables and figures again.

    A page shows the results next to what was published. Existing results are kept: delete the file
    of a result to measure it again. If interrupted, the same command resumes.
    """
    from getd import api

    if rows == ("list",):
        records = [asdict(row) for row in api.list_rows(into)]
        if json:
            print_json({"rows": records})
        else:
            print_table("Rows", list(records[0]), [record.values() for record in records], left=2)
        return

    def progress(name: str) -> AbstractContextManager[Callbacks]:
        if not quiet:
            print_message(name)
        return training_progress(quiet)

    result = api.reproduce(
        rows,
        every_row=all,
        seeds=seeds,
        budget=budget,
        into=into,
        runs=runs,
        progress=progress,
    )
    if not result.is_finished:
        print_notices(["the budget is spent; the same command resumes"])
    if json:
        print_json({"written": [str(path) for path in result.written], "page": str(result.page)})
        return
    for path in [*result.written, result.page]:
        print_line(str(path))

"""``getd convert``."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from getd.cli.options import Json, Reading
from getd.cli.output import download_progress, print_json, print_line, print_notices


def convert(
    data: str,
    out: str,
    /,
    *,
    to: Annotated[
        Literal["tsv", "csv", "parquet", "jsonl", "hyper-csv"] | None,
        Parameter(help="The form to write; else the ending of OUT tells, and a folder gets tsv."),
    ] = None,
    overwrite: Annotated[bool, Parameter(help="Replace what is at OUT.", negative="")] = False,
    reading: Reading | None = None,
    json: Json = False,
) -> None:
    """Write a data set in another form: every fact in its order, none dropped.

    Parameters
    ----------
    data
        A folder with train, valid and test, a single file, or the name of a data set (see: getd datasets).
    out
        A new folder for train, valid and test, or a file where DATA is one. A single file is split 8:1:1 into a folder.
    """
    from getd.datasets.convert import convert as convert_facts

    with download_progress() as progress:
        options = (reading or Reading()).settings()
        written = convert_facts(data, out, to, overwrite=overwrite, progress=progress, **options)
    print_notices(written.notices)
    if json:
        print_json({"out": out, "facts": written.facts})
    else:
        files = ", ".join(f"{number:,} facts to {name}" for name, number in written.facts.items())
        print_line(f"wrote {files} at {out}")

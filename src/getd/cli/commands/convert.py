"""``getd convert``."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from getd.choices import WriteFormat
from getd.cli.options import Data, Json, Overwrite, Reading
from getd.cli.output import print_json, print_line, print_notices
from getd.cli.progress import download_progress


def convert(
    data: Data,
    out: Annotated[
        str,
        Parameter(
            help="Folder, or a file if DATA is a file. From file to folder, facts are split 8:1:1."
        ),
    ],
    /,
    *,
    to: Annotated[
        WriteFormat | None,
        Parameter(help="Output format. Default: by the extension of OUT; tsv for a folder."),
    ] = None,
    overwrite: Overwrite = False,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """Convert a data set to another file format.

    All facts are kept in order, including duplicates.
    """
    from getd.api import convert as convert_facts

    settings = asdict(reading)
    with download_progress() as progress:
        written = convert_facts(data, out, to, overwrite=overwrite, progress=progress, **settings)
    print_notices(written.notices)

    if json:
        print_json({"out": out, "facts": written.facts})
        return
    files = ", ".join(f"{number:,} facts to {name}" for name, number in written.facts.items())
    print_line(f"wrote {files} at {out}")

"""``getd extend``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.inputs import open_run
from getd.cli.options import FactFile, Format, Json, RunPath, read_format
from getd.cli.output import print_json, print_line
from getd.cli.progress import counting_progress


def extend(
    run: RunPath,
    facts: FactFile,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder of the new run.")],
    format: Format = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Add new facts and entities to a run without training it again.

    The result is a new run. New entities get embeddings that are fitted to their facts; all other
    weights stay the same. Relations must be known.
    """
    with counting_progress("fitting new entities") as progress:
        larger = open_run(run).extend(facts, out, progress, read_format(format))
    counts = larger.folder.read_json("extended.json")

    if json:
        del counts["from"]
        print_json({"run": str(out), **counts})
        return
    line = f"{out}: {counts['facts']:,} facts more, {counts['new_entities']:,} new entities"
    if counts["known_before"]:
        line += f"; {counts['known_before']:,} facts were known"
    print_line(line)

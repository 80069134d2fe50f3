"""``getd extend``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import Form, Json, chosen
from getd.cli.output import counting_progress, print_json, print_line


def extend(
    run: Path,
    facts: Path,
    /,
    *,
    out: Annotated[Path, Parameter(help="The folder of the new run.")],
    format: Form = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Teach a run new facts and the entities that are new in them, without training it again.

    New entities get vectors that are fitted to their facts; all that was learnt stays as it was. Relations cannot be
    new.

    Parameters
    ----------
    run
        The folder that training left; it is not changed.
    facts
        A file of facts, in any form that they are read from.
    """
    from getd.cli.opening import open_run

    with counting_progress("fitting new entities") as progress:
        found = open_run(run).extend(facts, out, progress, chosen(format))
    about = found.folder.read_json("extended.json")
    if json:
        print_json(
            {"run": str(out), **{key: value for key, value in about.items() if key != "from"}}
        )
        return
    told = f"{out}: {about['facts']:,} facts more, {about['new_entities']:,} new entities"
    print_line(
        f"{told}; {about['known_before']:,} facts were known" if about["known_before"] else told
    )

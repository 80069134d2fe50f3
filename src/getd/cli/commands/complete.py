"""``getd complete``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.output import counting_progress, print_line
from getd.errors import ConfigError


def complete(
    run: Path,
    /,
    *,
    relation: Annotated[str, Parameter(help="The relation whose missing facts are looked for.")],
    out: Annotated[Path, Parameter(help="The file to write: .tsv, .jsonl or .parquet.")],
    top: Annotated[int, Parameter(help="How many facts at most.")] = 100,
    min_confidence: Annotated[float, Parameter(help="The least chance that a fact is true.")] = 0.5,
    overwrite: Annotated[
        bool, Parameter(help="Replace a file that is there.", negative="")
    ] = False,
) -> None:
    """Write the most probable missing facts of a relation, the likeliest first.

    Every known fact is asked for what else could stand in each of its places. Interrupted, the same command goes on.

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.cli.opening import open_run

    if top < 1:
        raise ConfigError(f"expected --top of 1 or more, found {top}")
    if not 0 <= min_confidence <= 1:
        raise ConfigError(f"expected --min-confidence between 0 and 1, found {min_confidence:g}")
    opened = open_run(run)
    with counting_progress("asking") as progress:
        number = opened.complete(relation, out, top, min_confidence, overwrite, progress)
    print_line(f"{out}: {number:,} facts")

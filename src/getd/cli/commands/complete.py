"""``getd complete``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.inputs import open_run
from getd.cli.options import Overwrite, RunPath, ScorePrecision
from getd.cli.output import print_line
from getd.cli.progress import counting_progress
from getd.errors import ConfigError


def complete(
    run: RunPath,
    /,
    *,
    relation: Annotated[
        str | None, Parameter(help="Relation to complete; may be omitted if there is only one.")
    ] = None,
    out: Annotated[Path, Parameter(help="File to write: .tsv, .jsonl or .parquet.")],
    top: Annotated[int, Parameter(help="Maximum number of facts.")] = 100,
    min_confidence: Annotated[float, Parameter(help="Minimum confidence of a fact.")] = 0.5,
    precision: ScorePrecision = "fp32",
    overwrite: Overwrite = False,
) -> None:
    """Write the most probable missing facts of a relation, best first.

    For each known fact of the relation and each of its positions, other entities are predicted. If
    interrupted, the same command resumes. A line of TSV has two more columns, confidence and
    plausibility; JSON lines can be read as facts again.
    """
    if top < 1:
        raise ConfigError(f"expected --top of 1 or more, found {top}")
    if not 0 <= min_confidence <= 1:
        raise ConfigError(f"expected --min-confidence between 0 and 1, found {min_confidence:g}")

    opened = open_run(run)
    if relation is None:
        relation = opened.kb.only_relation
    with counting_progress("predicting") as progress:
        number = opened.complete(relation, out, top, min_confidence, overwrite, progress, precision)
    print_line(f"{out}: {number:,} facts")

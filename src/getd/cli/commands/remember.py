"""``getd remember``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import Json
from getd.cli.output import print_json, print_table


def remember(
    run: Path,
    /,
    *,
    sample: Annotated[
        int | None, Parameter(help="Fit on this many facts of validation, drawn at random.")
    ] = None,
    json: Json = False,
) -> None:
    """Give a trained run a memory: what stood beside the given entities in the training facts counts too.

    Nothing is trained. How much it counts is fitted on the validation facts, among candidates that are no known answers
    of train and valid, and kept in the run; evaluate and predict use it from then on. Test is not read.

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.api import open_run

    opened = open_run(run, memory=False)
    before = opened.evaluate("valid", sample=sample, by=(), baselines=False).mrr
    after = opened.remember(sample)
    weights = opened.folder.read_json("memory.json")["weights"]
    if json:
        print_json(
            {"run": str(run), "valid_mrr": {"without": before, "with": after}, "weights": weights}
        )
        return
    rows = [["without memory", before], ["with memory", after]]
    print_table("Validation", ["", "MRR"], rows)
    counts = []
    for place, found in weights.items():
        counts.append([place, "the model", found["scale"], None])
        counts += [
            [place, source, each["share"], each["log_share"]]
            for source, each in found["sources"].items()
        ]
    print_table("Weights", ["arity-position", "source", "share", "log share"], counts, left=2)

"""``getd remember``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.flags import Json
from getd.cli.show import print_json, print_table


def remember(
    run: Path,
    /,
    *,
    sample: Annotated[int | None, Parameter(help="Choose on this many facts of validation, drawn at random.")] = None,
    json: Json = False,
) -> None:
    """Give a trained run a memory: what stood beside the given entities in the training facts counts too.

    Nothing is trained. How much it counts is chosen on validation and kept in the run; evaluate and predict use it from
    then on. Test is not read.

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.prediction.run import open_run

    opened = open_run(run, memory=False)
    before = opened.evaluate("valid", sample=sample, by=(), floors=False).mrr
    after = opened.remember(sample)
    weights = opened.folder.read_json("memory.json")["weights"]
    if json:
        print_json({"run": str(run), "valid_mrr": {"without": before, "with": after}, "weights": weights})
        return
    rows = [["without memory", before], ["with memory", after]]
    print_table("Validation", ["", "MRR"], rows)
    names = list(next(iter(weights.values())))
    rows = [[place, *(values[name] for name in names)] for place, values in weights.items()]
    print_table("Weights of the memory", ["arity-position", *names], rows)

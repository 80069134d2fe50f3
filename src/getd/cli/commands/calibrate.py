"""``getd calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import Json
from getd.cli.output import print_json, print_table
from getd.errors import ConfigError


def calibrate(
    run: Path,
    /,
    *,
    sample: Annotated[
        int | None, Parameter(help="Fit on this many facts of each arity, drawn at random.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit on validation what turns the scores of a run into probabilities and confidence; test is not read.

    Training does it when it ends, and remember does it again; this is for runs that have it not yet.

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.cli.opening import open_run

    if sample is not None and sample < 1:
        raise ConfigError(f"expected --sample of 1 or more, found {sample}")
    opened = open_run(run)
    fitted = opened.calibrate(sample)
    found = opened.folder.read_json("calibration.json")["valid"]
    errors = {name: found[name]["error"] for name in ("before", "after")}
    if json:
        print_json(
            {"run": str(run), "temperature": fitted.temperature, "calibration_error": errors}
        )
        return
    rows = [
        [arity, value, fitted.confidence[arity].shape]
        for arity, value in fitted.temperature.items()
    ]
    print_table("Fitted", ["arity", "temperature", "confidence"], rows)
    print_table(
        "Calibration error of first answers, on validation",
        ["", "error"],
        [*map(list, errors.items())],
    )

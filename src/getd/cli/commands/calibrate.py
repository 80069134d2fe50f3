"""``getd calibrate``."""

from typing import Annotated

from cyclopts import Parameter

from getd.cli.inputs import open_run
from getd.cli.options import Json, RunPath
from getd.cli.output import print_json, print_table
from getd.errors import ConfigError


def calibrate(
    run: RunPath,
    /,
    *,
    sample: Annotated[
        int | None, Parameter(help="Fit on at most this many random facts of each arity.")
    ] = None,
    json: Json = False,
) -> None:
    """Calibrate probabilities and confidences on validation.

    Training and getd remember calibrate automatically; use this for runs that are not calibrated
    yet. Test is not read.
    """
    if sample is not None and sample < 1:
        raise ConfigError(f"expected --sample of 1 or more, found {sample}")
    fitted = open_run(run).calibrate(sample)

    valid = fitted.valid
    errors = {"before": valid.before.error, "after": valid.after.error} if valid else {}
    if json:
        result = {"run": str(run), "temperature": fitted.temperature, "calibration_error": errors}
        print_json(result)
        return

    rows = []
    for arity, temperature in fitted.temperature.items():
        rows.append([arity, temperature, fitted.confidence[arity].shape])
    print_table("Fitted", ["arity", "temperature", "confidence"], rows)
    title = "Calibration error of first answers, on validation"
    print_table(title, ["", "error"], list(errors.items()))

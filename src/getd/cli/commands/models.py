"""``getd models``."""

from typing import Annotated

from cyclopts import Parameter

from getd.cli.inputs import load_data
from getd.cli.options import Json, Reading
from getd.cli.output import print_json, print_table


def models(
    data: Annotated[
        str | None,
        Parameter(help="Data set to count the parameters for. Default: show them as a formula."),
    ] = None,
    /,
    *,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """List the models with their arities, parameters and settings."""
    from getd.api import models as list_models

    records = list_models(None if data is None else load_data(data, reading))
    if json:
        print_json({"models": records})
        return

    rows = []
    for record in records:
        parameters = record["parameters"]
        if parameters is None:
            parameters = "not for these facts"
        rows.append([record["name"], record["arity"], parameters, record["about"]])
    print_table("Models", ["name", "arity", "parameters", "what"], rows, left=4)

    for record in records:
        if record["settings"]:
            rows = [[f"model.{key}", value] for key, value in record["settings"].items()]
            title = f"Settings of {record['name']} and their defaults"
            print_table(title, ["setting", "default"], rows, left=2)

"""``getd models``."""

from __future__ import annotations

from typing import Any

from getd.cli.options import Json, Reading
from getd.cli.output import download_progress, print_json, print_table


def models(
    data: str | None = None, /, *, reading: Reading | None = None, json: Json = False
) -> None:
    """List the models: for which arities, how many parameters, what each is, and its settings.

    Parameters
    ----------
    data
        A data set to count the parameters for, with the default settings; else they are given as a formula.
    """
    from getd.models.registry import MODELS, describe_models

    found = describe_models()
    if data is not None:
        counts = _counts(data, reading or Reading())
        found = [record | {"parameters": counts.get(record["name"], 0)} for record in found]
    if json:
        print_json({"models": found})
        return
    rows = [
        [record["name"], record["arity"], _shown(record["parameters"]), record["about"]]
        for record in found
    ]
    print_table("Models", ["name", "arity", "parameters", "what"], rows, left=4)
    for name in MODELS:
        record = next(record for record in found if record["name"] == name)
        rows = [[f"model.{key}", value] for key, value in record["settings"].items()]
        print_table(f"Settings of {name} and their defaults", ["setting", "default"], rows, left=2)


def _counts(data: str, reading: Reading) -> dict[str, int | None]:
    """How many numbers each model would learn; ``None``: it does not serve such facts."""
    from getd.datasets.load import load
    from getd.models.registry import count_parameters

    with download_progress() as progress:
        kb = load(data, progress=progress, **reading.settings())
    return count_parameters(kb.n_entities, kb.n_relations, kb.arities)


def _shown(parameters: Any) -> str:
    if parameters is None:
        return "not for these facts"
    return f"{parameters:,}" if isinstance(parameters, int) else parameters

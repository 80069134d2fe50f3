"""``getd models``."""

from __future__ import annotations

from getd.cli.flags import Json
from getd.cli.show import print_json, print_table


def models(*, json: Json = False) -> None:
    """List the models and their settings."""
    from getd.models.registry import MODELS, describe_models

    found = describe_models()
    if json:
        print_json({"models": found})
        return
    print_table("Models", ["name", "what"], [[record["name"], record["about"]] for record in found], left=2)
    for name in MODELS:
        record = next(record for record in found if record["name"] == name)
        rows = [[f"model.{key}", value] for key, value in record["settings"].items()]
        print_table(f"Settings of {name} and their defaults", ["setting", "default"], rows, left=2)

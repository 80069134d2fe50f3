"""``getd datasets``."""

from __future__ import annotations

from dataclasses import asdict

from getd.cli.options import Json
from getd.cli.output import print_json, print_line, print_table

_COUNTS = ("train", "valid", "test", "entities", "relations")
_JSON = ("name", "about", "arities", "facts", "entities", "relations", "licence", "source", "place")


def datasets(*, json: Json = False) -> None:
    """List the data sets that are known by name, and where each is on this machine."""
    from getd.datasets.catalogue import cache_folder, list_datasets

    records = []
    for dataset, location in list_datasets():
        values = asdict(dataset) | {"place": location}
        records.append({key: values[key] or None for key in (*_JSON, "sha256")})
    if json:
        print_json({"datasets": records, "cache": str(cache_folder())})
        return

    rows: list[list[object]] = []
    for record in records:
        texts = [record[key] or "" for key in ("name", "about", "licence", "source")]
        counts = [*(record["facts"] or [None] * 3), record["entities"], record["relations"]]
        rows.append([*texts, record["place"] or "not here yet", record["arities"], *counts])
    header = ["name", "what", "licence", "source", "place", "arity", *_COUNTS]
    print_table("Data sets", header, rows, left=5)
    print_line(
        f"A data set that is not here is downloaded to {cache_folder()} when it is first used."
    )

"""``getd datasets``."""

from __future__ import annotations

from getd.cli.options import Json
from getd.cli.output import print_json, print_line, print_table


def datasets(*, json: Json = False) -> None:
    """List the data sets that are known by name, and where each is on this machine."""
    from getd.datasets.catalogue import cache_folder
    from getd.datasets.load import list_datasets

    records = list_datasets()
    if json:
        plain = [record | {"place": record["place"] and str(record["place"])} for record in records]
        print_json({"datasets": plain, "cache": str(cache_folder())})
        return
    text = ("name", "about", "licence", "source", "place", "arities")
    rows = [
        [record[key] or "" for key in text[:-2]]
        + [record["place"] or "not here yet", record["arities"], *(record["facts"] or [None] * 3)]
        + [record["entities"], record["relations"]]
        for record in records
    ]
    header = [
        "name",
        "what",
        "licence",
        "source",
        "place",
        "arity",
        "train",
        "valid",
        "test",
        "entities",
        "relations",
    ]
    print_table("Data sets", header, rows, left=5)
    print_line(
        f"A data set that is not here is downloaded to {cache_folder()} when it is first used."
    )

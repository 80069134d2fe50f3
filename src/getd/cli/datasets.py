"""``getd datasets``."""

from __future__ import annotations

from getd.cli.flags import Json
from getd.cli.show import print_json, print_table


def datasets(*, json: Json = False) -> None:
    """List the data sets that are known by name, and where each is on this machine."""
    from getd.facts.datasets import DATASETS, cache_folder, locate_dataset
    from getd.facts.synthetic import SYNTHETIC

    generated = [
        ("demo", "a built-in sports world"),
        *((name, "the paper's toy tensor of CP rank one") for name in SYNTHETIC),
    ]
    rows = [{"name": name, "about": about, "source": "generated", "place": "built in"} for name, about in generated]
    places = {name: locate_dataset(name) for name in DATASETS}
    records = [
        {
            "name": name,
            "about": found.about,
            "facts": list(found.facts),
            "entities": found.entities,
            "relations": found.relations,
            "arities": found.arities,
            "licence": found.licence,
            "source": found.source,
            "place": str(places[name]) if places[name] else None,
            "sha256": dict(found.sha256),
        }
        for name, found in DATASETS.items()
    ]
    if json:
        print_json({"datasets": [*rows, *records], "cache": str(cache_folder())})
        return
    table: list[list[object]] = [
        [row["name"], row["about"], "", "", "generated", "built in", None, None, None, None, None] for row in rows
    ]
    table += [
        [
            name,
            found.about,
            found.licence,
            found.source,
            found.arities,
            str(places[name] or "not here yet"),
            *found.facts,
        ]
        + [found.entities, found.relations]
        for name, found in DATASETS.items()
    ]
    header = ["name", "what", "licence", "source", "arity", "place", "train", "valid", "test", "entities", "relations"]
    print_table("Data sets", header, table, left=6)
    print(f"A data set that is not here is downloaded to {cache_folder()} when it is first used.")

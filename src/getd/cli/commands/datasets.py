"""``getd datasets``."""

from getd.cli.options import Json
from getd.cli.output import print_json, print_line, print_table

KEYS = ("name", "about", "arities", "facts", "entities", "relations", "licence", "source")


def datasets(*, json: Json = False) -> None:
    """List the data sets that are known by name."""
    from getd.api import datasets as list_datasets

    catalogue = list_datasets()
    if json:
        records = []
        for dataset, location in catalogue.datasets:
            record = {key: getattr(dataset, key) for key in KEYS}
            records.append({**record, "place": location, "sha256": dict(dataset.sha256) or None})
        print_json({"datasets": records, "cache": str(catalogue.cache)})
        return

    rows = []
    for dataset, location in catalogue.datasets:
        texts = [dataset.name, dataset.about, dataset.licence or "", dataset.source]
        facts = dataset.facts or [None] * 3
        sizes = [dataset.arities, *facts, dataset.entities, dataset.relations]
        rows.append([*texts, location or "not downloaded", *sizes])
    header = "name what licence source place arity train valid test entities relations"
    print_table("Data sets", header.split(), rows, left=5)
    print_line(f"A data set is downloaded to {catalogue.cache} when it is first used.")

"""Makes the data of the examples, small worlds with rules that a model can find: ``python -m
examples.make_data``.
"""

from __future__ import annotations

import csv
import random
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent
REGIONS = {
    "north": ("Alta", "Borg", "Cairn"),
    "south": ("Mira", "Nola", "Orta"),
    "east": ("Pest", "Quern", "Riga"),
    "west": ("Sligo", "Tralee", "Ulva"),
}
FAMILIES = ("bolts", "cables", "filters", "pumps", "seals", "valves")
SIZES = ("S", "M", "L", "XL")
QUARTERS = tuple(f"{year}-Q{quarter}" for year in (2024, 2025) for quarter in (1, 2, 3, 4))
NAMES = (
    "Abel",
    "Boren",
    "Cardis",
    "Dunne",
    "Eklund",
    "Faro",
    "Gant",
    "Holt",
    "Imhof",
    "Jarvi",
    "Kessel",
    "Lund",
)


def deliveries(rng: random.Random) -> list[tuple[str, ...]]:
    """Each region buys each family of parts from two suppliers, by turns of two quarters."""
    chosen = {pair: rng.sample(NAMES, 2) for pair in product(REGIONS, FAMILIES)}
    rows = []
    for (region, sites), family, size, (number, quarter) in product(
        REGIONS.items(), FAMILIES, SIZES, enumerate(QUARTERS)
    ):
        for site in sites:
            if rng.random() < 0.45:
                rows.append(
                    (
                        f"{chosen[region, family][number // 2 % 2]} & Co",
                        f"{family} {size}",
                        site,
                        quarter,
                    )
                )
    rng.shuffle(rows)
    return rows


FIRST = (
    "Ama",
    "Bela",
    "Chen",
    "Dov",
    "Eszter",
    "Farid",
    "Gita",
    "Hans",
    "Ivo",
    "Jun",
    "Kofi",
    "Lea",
    "Mads",
    "Nour",
    "Oda",
)
LAST = ("Adeyemi", "Bauer", "Costa", "Dahl", "Eriksen", "Fofana", "Garcia", "Hoxha")
SCHOOLS = {
    "physics": ("Oxbow University", "Reedham Institute"),
    "law": ("Lochbrae College", "Oxbow University"),
    "medicine": ("Stonewater School", "Reedham Institute"),
    "history": ("Lochbrae College", "Stonewater School"),
}
EMPLOYERS = {
    "physics": "Kestrel Labs",
    "law": "Hale & Hale",
    "medicine": "Alder Bay Hospital",
    "history": "Glenmoor Museum",
}
CITIES = {
    "Kestrel Labs": "Kestrel Ridge",
    "Hale & Hale": "Oxbow",
    "Alder Bay Hospital": "Alder Bay",
    "Glenmoor Museum": "Glenmoor",
}


def careers(rng: random.Random) -> list[tuple[str, ...]]:
    """Statements with qualifiers: where people studied, what, to which degree; where they worked;
    where they lived.
    """
    rows: list[tuple[str, ...]] = []
    for person in (f"{first} {last}" for first, last in product(FIRST, LAST)):
        subject = rng.choice(sorted(SCHOOLS))
        first, second = SCHOOLS[subject]
        employer = EMPLOYERS[subject]
        rows.append(
            (person, "educated at", first, "subject of study", subject, "degree", "bachelor")
        )
        if rng.random() < 0.7:
            rows.append(
                (person, "educated at", second, "subject of study", subject, "degree", "doctor")
            )
            rows.append((person, "works for", employer, "position", f"senior in {subject}"))
        else:
            rows.append((person, "works for", employer, "position", f"junior in {subject}"))
        rows.append((person, "lives in", CITIES[employer]))
    rng.shuffle(rows)
    return rows


def main() -> None:
    with (HERE / "own-table" / "deliveries.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("supplier", "part", "site", "quarter"), *deliveries(random.Random(0))]
        )
    with (HERE / "hyper-relational" / "careers.csv").open(
        "w", newline="", encoding="utf-8"
    ) as file:
        csv.writer(file, lineterminator="\n").writerows(careers(random.Random(0)))


if __name__ == "__main__":
    main()

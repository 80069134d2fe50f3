"""Rows: everything that can be measured again, by name.

``paper/…`` and ``best/…`` are configs that ``getd train --config`` reads too; ``best/ROW+memory``, ``+ensemble`` and
``+valid`` are made from the runs of ``best/ROW``; ``figures/…`` are many trainings, ``tuning/…`` studies; the rest are
tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt

from getd.config import Settings, build, read_toml, with_values
from getd.errors import ConfigError, nearest
from getd.runs.config import Config
from getd.tuning.space import read_space

ROWS = Path(str(files("getd.experiments") / "rows"))
ADDED = ("memory", "ensemble", "valid")  # what a name may carry, in this order
MEMBERS = (0, 1, 2)  # the seeds of an ensemble
KINDS: Mapping[str, Literal["figure", "study"]] = {"figures": "figure", "tuning": "study"}
TABLES = {
    "statistics": "Table 3: entities, relations and facts of each data set, and our baselines",
    "complexity": "Table 2: parameters by formula and counted, and which models are fully expressive",
    "cost": "Seconds of an epoch, of a whole training and of inference on WikiPeople-3",
    "claims": "Each claim of the paper's prose: shown, refuted or not measured",
}


class RowTable(Settings):
    """Settings of ``[row]``."""

    about: str = ""  # one line
    minutes: PositiveInt | None = None  # what one training takes on one core
    x: str = ""  # figures: what the axis shows
    parameters: bool = False  # figures: the number of parameters beside the MRR
    reference: str = ""  # figures: a row whose MRR is drawn as a line
    curves: bool = False  # figures: loss and MRR of train and test by epoch, in place of one number


class StudyTable(Settings):
    """Settings of ``[study]``."""

    trials: PositiveInt = 50
    space: str | dict[str, Any] = "paper"  # a name, or [study.space.training.decay] and so on


@dataclass(frozen=True)
class Row:
    """A row of a table, or a figure."""

    name: str
    kind: Literal["training", "derived", "figure", "study", "table"]
    told: RowTable
    tables: Mapping[str, Any] = field(default_factory=dict)  # what its file holds

    @property
    def study(self) -> StudyTable:
        """What a study does."""
        return build(StudyTable, self.tables["study"], f"{self.name}: study")

    @property
    def base(self) -> str:
        """The row whose runs a derived row is made from."""
        return self.name.split("+")[0]

    @property
    def added(self) -> tuple[str, ...]:
        """What a derived row has on top."""
        return tuple(self.name.split("+")[1:])


@dataclass(frozen=True)
class Point:
    """One measurement: a row with a seed, of a figure one of its points."""

    row: str
    seed: int
    config: Mapping[str, Any] = field(default_factory=dict)
    series: str = ""
    x: float | None = None

    @property
    def name(self) -> str:
        """The name of its files."""
        place = (
            f"-{self.series}-{self.x:g}"
            if self.x is not None
            else f"-{self.series}"
            if self.series
            else ""
        )
        return (
            f"{self.row.replace('/', '-')}{place}-seed-{self.seed}".lower()
            .replace(", ", "-")
            .replace(" ", "-")
        )


@cache
def all_rows() -> dict[str, Row]:
    """Every row, by name."""
    rows = {}
    for path in sorted(ROWS.rglob("*.toml")):
        row = read_row(path)
        rows[row.name] = row
        if row.name.startswith("best/getd-"):
            for added in _combinations():
                name = "+".join([row.name, *added])
                rows[name] = Row(name, "derived", _derived(row.told, added))
    return rows | {
        name: Row(name, "table", RowTable(about=about)) for name, about in TABLES.items()
    }


def read_row(path: Path) -> Row:
    """The row of a file, every setting of it checked."""
    tables, name = read_toml(path), str(path.relative_to(ROWS).with_suffix(""))
    about = f"{tables['model']['name']} on {tables['data']}" if "model" in tables else name
    told = build(RowTable, {"about": about} | tables.get("row", {}), f"{name}: row")
    row = Row(name, KINDS.get(name.split("/")[0], "training"), told, tables)
    for point in points(row, [0]):
        config = Config.parse(point.config)
        if row.kind == "study":
            read_space(row.study.space, config)
    return row


def find_row(name: str) -> Row:
    """A row by its name, or the nearest name."""
    rows = all_rows()
    if name not in rows:
        raise ConfigError(f"no row {name!r}{nearest(name, list(rows))} (see: getd reproduce list)")
    return rows[name]


def points(row: Row, seeds: list[int]) -> list[Point]:
    """What has to be measured for a row; an ensemble is one measurement, whatever the seeds."""
    if row.kind == "table":
        return [Point(row.name, 0)]
    if row.kind == "derived":
        chosen = seeds[:1] if "ensemble" in row.added else seeds
        return [Point(row.name, seed, all_rows()[row.base].tables) for seed in chosen]
    if row.kind == "training":
        return [Point(row.name, seed, row.tables) for seed in seeds]
    base = {key: row.tables[key] for key in ("data", "model", "training") if key in row.tables}
    if row.kind == "study":
        return [Point(row.name, 0, base)]
    found = []
    for series in row.tables["series"]:
        for place in series.get("points", [{}]):
            values = {
                **series.get("base", {}),
                **{key: value for key, value in place.items() if key != "x"},
            }
            config = with_values(base, values)
            found += [
                Point(row.name, seed, config, series["label"], place.get("x")) for seed in seeds
            ]
    return found


def _combinations() -> list[tuple[str, ...]]:
    return [
        tuple(name for name, on in zip(ADDED, (memory, ensemble, valid), strict=True) if on)
        for valid in (False, True)
        for ensemble in (False, True)
        for memory in (False, True)
        if memory or ensemble or valid
    ]


def _derived(base: RowTable, added: tuple[str, ...]) -> RowTable:
    words = {
        "memory": "with a memory",
        "ensemble": f"{len(MEMBERS)} seeds as one",
        "valid": "trained again on train and valid",
    }
    about = ", ".join([base.about, *(words[name] for name in added)])
    trainings = (len(MEMBERS) if "ensemble" in added else 1) * (2 if "valid" in added else 1)
    return RowTable(about=about, minutes=base.minutes and base.minutes * trainings)

"""Rows: everything that can be measured again, by name.

``paper/…`` and ``best/…`` are configs that ``getd train --config`` reads too. ``best/ROW+memory``,
``+ensemble`` and ``+valid`` are made from the runs of ``best/ROW``; ``combined/…`` from those of
several rows. ``figures/…`` are many trainings, ``tuning/…`` are studies, and the others are tables.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt

from getd.config import Settings, build, read_toml, with_values
from getd.errors import ConfigError, nearest
from getd.runs.config import Config
from getd.tuning.space import read_space

RowKind = Literal["training", "combined", "derived", "figure", "study", "table"]
Values = dict[str, Any]
PACKAGE = Path(__file__).parent
ROWS = PACKAGE / "rows"
MEMBERS = (0, 1, 2)  # the seeds of an ensemble
KINDS: Mapping[str, RowKind] = {  # by folder
    "figures": "figure",
    "tuning": "study",
    "combined": "combined",
}
TABLES = {
    "statistics": "Table 3: entities, relations and facts of each data set, and our baselines",
    "complexity": (
        "Table 2: parameters by formula and counted, and which models are fully expressive"
    ),
    "cost": "Seconds of an epoch, of a whole training and of inference on WikiPeople-3",
    "claims": "Each claim of the paper's prose: shown, refuted or not measured",
}
ADDITIONS = {  # what a derived row may add
    "memory": "with a memory",
    "ensemble": f"{len(MEMBERS)} seeds as one",
    "valid": "trained again on train and valid",
}
DERIVED = (  # what follows the name of the base row
    *("+memory", "+ensemble", "+memory+ensemble"),
    *("+valid", "+memory+valid", "+ensemble+valid", "+memory+ensemble+valid"),
)
DERIVED_OF_ONE = ("+memory", "+valid", "+memory+valid")


class RowInfo(Settings):
    """Settings of ``[row]``."""

    about: str = ""  # one line
    minutes: PositiveInt | None = None  # of one training on one core
    x: str = ""  # figures: the label of the x-axis
    parameters: bool = False  # figures: draw the number of parameters next to the MRR
    reference: str = ""  # figures: a row whose MRR is drawn as a line
    curves: bool = False  # figures: draw losses and MRR by epoch


class SeriesTable(Settings):
    """A table of ``[[series]]``: values by ``section.key``; each point has an ``x`` as well."""

    label: str
    base: Values = Field(default_factory=dict)
    points: tuple[Values, ...] = ({},)


class StudyTable(Settings):
    """Settings of ``[study]``."""

    trials: PositiveInt = 50
    space: str | Values = "paper"  # a name, or [study.space.training.decay] and so on


@dataclass(frozen=True)
class Point:
    """One measurement: a row with a seed; of a figure, one of its points."""

    row: str
    seed: int = 0
    config: Config = field(default_factory=lambda: Config.parse({}))  # a table needs none
    series: str = ""
    x: float | None = None

    @property
    def name(self) -> str:
        """The name of its files."""
        name = self.row
        if self.series:
            name += f"-{self.series}"
        if self.x is not None:
            name += f"-{self.x:g}"
        return re.sub("/|, | ", "-", f"{name}-seed-{self.seed}".lower())


@dataclass(frozen=True)
class Row:
    """A row of a table, a figure, a study or a whole table."""

    name: str
    kind: RowKind
    info: RowInfo
    points: tuple[Point, ...]  # with seed 0
    study: StudyTable = field(default_factory=StudyTable)
    members: tuple[str, ...] = ()  # combined: the rows whose models are combined

    @property
    def data(self) -> str:
        """The name of the data set."""
        return str(self.points[0].config.data)

    @property
    def published(self) -> Mapping[str, float]:
        """The metrics of the paper; empty: it has none."""
        return self.points[0].config.published or {}

    @property
    def base(self) -> str:
        """The row whose runs a derived row is made from."""
        return self.name.split("+")[0]

    @property
    def added(self) -> str:
        """What a derived row adds to its base, with a ``+`` in between."""
        return self.name.partition("+")[2]

    def with_seeds(self, seeds: Iterable[int]) -> list[Point]:
        """Return what is measured; tables and studies have one seed, an ensemble the first."""
        chosen = list(seeds)
        if self.kind in ("table", "study"):
            chosen = [0]
        elif "ensemble" in self.added:
            chosen = chosen[:1]
        return [replace(point, seed=seed) for point in self.points for seed in chosen]


@cache
def all_rows() -> dict[str, Row]:
    rows = []
    for path in sorted(ROWS.rglob("*.toml")):
        row = read_row(path)
        rows.append(row)
        if row.name.startswith("best/getd-"):
            rows += _derived_rows(row, DERIVED)
        elif row.name.startswith("best/encoder-") or row.kind == "combined":
            rows += _derived_rows(row, DERIVED_OF_ONE)

    for name, about in TABLES.items():
        rows.append(Row(name, "table", RowInfo(about=about), (Point(name),)))
    return {row.name: row for row in rows}


def read_row(path: Path) -> Row:
    """Read the row of a file and check all its settings."""
    folder = path.parent.name
    kind = KINDS.get(folder, "training")
    name = f"{folder}/{path.stem}"
    tables = read_toml(path)
    members = tuple(tables.pop("members", ()))
    about = name
    if members:
        about = f"{' and '.join(members)} as one"
    elif "model" in tables:
        about = f"{tables['model']['name']} on {tables['data']}"
    info = build(RowInfo, {"about": about} | tables.get("row", {}), f"{name}: row")

    points = []
    study = build(StudyTable, tables.pop("study", {}), f"{name}: study")
    for table in tables.pop("series", [{"label": ""}]):  # a training or a study is one point
        series = build(SeriesTable, table, f"{name}: series")
        for values in series.points:
            x = values.pop("x", None)
            config = Config.parse(with_values(tables, series.base | values))
            points.append(Point(name, 0, config, series.label, x))

    if kind == "study":
        read_space(study.space, points[0].config)
    return Row(name, kind, info, tuple(points), study, members)


def find_row(name: str) -> Row:
    """Return a row by its name; a mistyped name gets the nearest one."""
    rows = all_rows()
    if name not in rows:
        raise ConfigError(f"no row {name!r}{nearest(name, list(rows))} (see: getd reproduce list)")
    return rows[name]


def _derived_rows(base: Row, suffixes: Sequence[str]) -> list[Row]:
    """Return a row for every choice of additions."""
    rows = []
    for suffix in suffixes:
        about = base.info.about
        for addition in suffix.split("+")[1:]:
            about += f", {ADDITIONS[addition]}"

        minutes = base.info.minutes
        if minutes and "ensemble" in suffix:
            minutes *= len(MEMBERS)
        if minutes and "valid" in suffix:
            minutes *= 2

        name = base.name + suffix
        points = tuple(replace(point, row=name) for point in base.points)
        info = RowInfo(about=about, minutes=minutes)
        rows.append(Row(name, "derived", info, points, members=base.members))
    return rows

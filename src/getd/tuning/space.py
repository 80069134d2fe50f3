"""Search spaces: which settings are tried, and from where to where, as TOML.

A table for each setting, ``[training.learning_rate]``, holds either ``low`` and ``high`` (both whole: whole numbers are
tried), perhaps with ``log = true``, or ``choices``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from getd.config import Settings, build, read_toml
from getd.errors import ConfigError, nearest
from getd.runs.config import Config

SPACES = ("paper", "wide")
Value = bool | int | float | str


class Range(Settings):
    """Numbers between two bounds, both included."""

    low: int | float
    high: int | float
    log: bool = False

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def ends(self) -> list[Value]:
        """The values to check."""
        return [self.low, self.high]

    def holds(self, value: Any) -> bool:
        """Whether it may be tried."""
        return (
            isinstance(value, int if self.is_whole else int | float)
            and self.low <= value <= self.high
        )


class Choices(Settings):
    """One of a few values."""

    choices: tuple[Value, ...]

    def ends(self) -> list[Value]:
        """The values to check."""
        return list(self.choices)

    def holds(self, value: Any) -> bool:
        """Whether it may be tried."""
        return value in self.choices


Space = dict[str, Range | Choices]  # by section.key


def read_space(space: str | Mapping[str, Any], config: Config) -> Space:
    """The space of that name, without what the model has not; or of a file or tables, all of which must fit."""
    if not isinstance(space, str):
        return _build("space", space, config)
    if space in SPACES:
        tables = read_toml(Path(str(files("getd.tuning") / "spaces" / f"{space}.toml")))
    elif Path(space).exists():
        tables = read_toml(Path(space))
    else:
        raise ConfigError(
            f"no space or file {space!r}{nearest(space, SPACES)} (there are {', '.join(SPACES)})"
        )
    return _build(space, tables, config)


def _build(name: str, tables: Mapping[str, Any], config: Config) -> Space:
    checked = config.tables()
    space: Space = {}
    for section, keys in tables.items():
        is_table = isinstance(keys, Mapping) and all(
            isinstance(value, Mapping) for value in keys.values()
        )
        if section not in ("model", "training") or not is_table:
            raise ConfigError(
                f"{name}: expected tables [model.KEY] and [training.KEY], found {section!r}"
            )
        for key, values in keys.items():
            if key in checked[section] and key != "name":
                space[f"{section}.{key}"] = _dimension(f"{name}: {section}.{key}", values)
            elif name not in SPACES:
                raise ConfigError(
                    f"{name}: no setting {section}.{key}{nearest(key, list(checked[section]))}"
                )
    _check(space, config)
    return space


def _dimension(place: str, values: Mapping[str, Any]) -> Range | Choices:
    if "choices" in values:
        found = build(Choices, values, place)
        if not found.choices:
            raise ConfigError(f"{place}: expected choices, found none")
        return found
    span = build(Range, values, place)
    if not (math.isfinite(span.low) and math.isfinite(span.high) and span.low <= span.high):
        raise ConfigError(f"{place}: expected low ≤ high, found {span.low} and {span.high}")
    if span.log and span.low <= 0:
        raise ConfigError(f"{place}: expected low > 0 with log = true, found {span.low}")
    return span


def _check(space: Space, config: Config) -> None:
    """Every end of every setting must be one that training accepts."""
    for name, dimension in space.items():
        for value in dimension.ends():
            config.with_values({name: value})

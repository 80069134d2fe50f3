"""Search spaces: which settings are tried, within which bounds, as TOML.

A table per setting, ``[training.learning_rate]``, holds either ``choices``, or ``low`` and
``high``, on a logarithmic scale with ``log = true``. Whole bounds mean whole numbers.
"""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from getd.config import Settings, build, read_toml
from getd.errors import ConfigError, nearest
from getd.runs.config import Config

SPACES = ("paper", "wide")
Value = bool | int | float | str
Tables = Mapping[str, Any]


class Range(Settings):
    """Numbers between two bounds, both included."""

    low: int | float
    high: int | float
    log: bool = False

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: Any) -> bool:
        """Whether it may be tried."""
        kind = int if self.is_whole else int | float
        return isinstance(value, kind) and self.low <= value <= self.high


class Choices(Settings):
    """One of a few values."""

    choices: tuple[Value, ...]

    def holds(self, value: Any) -> bool:
        return value in self.choices


Dimension = Range | Choices


class Space(dict[str, Dimension]):
    """The settings that are searched, by ``section.key``."""

    @property
    def logarithmic(self) -> list[str]:
        """The settings that are searched on a logarithmic scale."""
        return [name for name, each in self.items() if isinstance(each, Range) and each.log]

    def tables(self) -> dict[str, Any]:
        """Return the space ready for JSON."""
        return {name: dimension.model_dump() for name, dimension in self.items()}

    def values_of(self, config: Config) -> dict[str, Value]:
        """Return the values of a config that lie in the space."""
        tables = config.tables()
        values = {}
        for name, dimension in self.items():
            section, _, key = name.partition(".")
            value = tables[section][key]
            if dimension.holds(value):
                values[name] = value
        return values


def read_space(space: str | Tables, config: Config) -> Space:
    """Read a space: by name, from a TOML file, or from tables.

    A named space loses the settings that the model does not have; elsewhere they are refused.
    """
    if not isinstance(space, str):
        return _build("space", space, config)
    path = Path(space)
    if space in SPACES:
        path = Path(__file__).parent / "spaces" / f"{space}.toml"
    elif not path.exists():
        raise ConfigError(
            f"no space or file {space!r}{nearest(space, SPACES)} (there are {', '.join(SPACES)})"
        )
    return _build(space, read_toml(path), config)


def _build(name: str, tables: Tables, config: Config) -> Space:
    settings = config.tables()
    space = Space()
    for section, keys in tables.items():
        is_table = isinstance(keys, Mapping) and all(isinstance(v, Mapping) for v in keys.values())
        if section not in ("model", "training") or not is_table:
            raise ConfigError(
                f"{name}: expected tables [model.KEY] and [training.KEY], found {section!r}"
            )

        known = settings[section]
        for key, values in keys.items():
            setting = f"{section}.{key}"
            if key in known and key != "name":
                space[setting] = _dimension(f"{name}: {setting}", values)
            elif name not in SPACES:
                raise ConfigError(f"{name}: no setting {setting}{nearest(key, list(known))}")

    # Training must accept both ends of every dimension.
    for setting, each in space.items():
        ends = (each.low, each.high) if isinstance(each, Range) else each.choices
        for value in ends:
            config.with_values({setting: value})
    return space


def _dimension(name: str, values: Tables) -> Dimension:
    if "choices" in values:
        choices = build(Choices, values, name)
        if not choices.choices:
            raise ConfigError(f"{name}: expected choices, found none")
        return choices

    span = build(Range, values, name)
    low = span.low
    high = span.high
    if not -inf < low <= high < inf:
        raise ConfigError(f"{name}: expected low ≤ high, found {low} and {high}")
    if span.log and low <= 0:
        raise ConfigError(f"{name}: expected low > 0 with log = true, found {low}")
    return span

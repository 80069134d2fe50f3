"""Settings: frozen models, their TOML form, and ``section.key=value`` overrides.

Each room owns its own model, a subclass of :class:`Settings`; this module turns what a person wrote (a TOML file, a
flag, keyword arguments) into one of them, and a mistake into one sentence with the nearest right name.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from getd.errors import ConfigError, nearest

MOST_PARTS = 100  # of a dotted key: a.b.c


class Settings(BaseModel):
    """The base of every settings model: frozen, checked once, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


S = TypeVar("S", bound=Settings)


def build(model: type[S], values: Mapping[str, Any], section: str = "") -> S:
    """Make a settings model, or raise :class:`ConfigError` with one sentence about the first mistake.

    ``section`` is how messages name the place, ``training`` for ``training.learning_rate``.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_explain(model, error.errors()[0], section)) from None


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a TOML file; what cannot be read or parsed is a :class:`ConfigError` naming file and place."""
    try:
        return _parse_toml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected UTF-8, found byte 0x{error.object[error.start]:02x} at offset {error.start}"
        ) from None
    except RecursionError:
        raise ConfigError(f"{path}: expected TOML, found values nested too deeply") from None
    except (
        ValueError
    ) as error:  # TOMLDecodeError, and what Python says of numbers and dates that it cannot hold
        raise ConfigError(f"{path}: {str(error)[:1].lower()}{str(error)[1:]}") from None


def section_of(tables: Mapping[str, Any], section: str) -> dict[str, Any]:
    """A section of a config, empty where it has none; a value in its place is refused.

    >>> section_of({"model": {"name": "getd"}}, "model"), section_of({}, "training")
    ({'name': 'getd'}, {})
    """
    values = tables.get(section, {})
    if not isinstance(values, Mapping):
        raise ConfigError(f"expected a section [{section}], found {section} = {values!r}")
    return dict(values)


def to_toml(tables: Mapping[str, Any]) -> str:
    """The TOML text of plain values and of one level of tables; ``None`` (unset) is left out.

    >>> print(to_toml({"data": "demo", "model": {"ranks": [2, 3], "shape": None}}), end="")
    data = "demo"
    <BLANKLINE>
    [model]
    ranks = [2, 3]
    """
    plain = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    nested = {key: value for key, value in tables.items() if isinstance(value, Mapping)}
    parts = [_toml_lines(plain)] if plain else []
    parts += [f"[{_toml_key(name)}]\n" + _toml_lines(table) for name, table in nested.items()]
    return "\n".join(parts)


def override(tables: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """The tables with ``section.key=value`` applied; a value is TOML, or plain text where TOML has no such value.

    >>> override({"training": {"epochs": 5}}, ["training.epochs=7", "model.name=getd"])
    {'training': {'epochs': 7}, 'model': {'name': 'getd'}}
    """
    result = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in tables.items()
    }
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        section, dot, key = path.strip().partition(".")
        if not (equals and dot and section and key):
            raise ConfigError(f"expected section.key=value, found {assignment!r}")
        table = result.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section!r} is a single value, not a section, in {assignment!r}")
        table[key] = _toml_value(text.strip())
    return result


def with_values(tables: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with values, named ``section.key``, in them.

    >>> with_values({"data": "demo", "training": {"epochs": 5}}, {"training.decay": 0.9})
    {'data': 'demo', 'training': {'epochs': 5, 'decay': 0.9}}
    """
    result = override(tables, [])
    for name, value in values.items():
        section, _, key = name.partition(".")
        result.setdefault(section, {})[key] = value
    return result


def _explain(model: type[Settings], error: ErrorDetails, section: str) -> str:
    path = ".".join([section] * bool(section) + [str(part) for part in error["loc"]])
    if error["type"] == "extra_forbidden":
        return f"no setting {path}{nearest(str(error['loc'][-1]), list(model.model_fields))}"
    if error["type"] == "missing":
        return f"setting {path} is missing"
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        options = [
            option.strip("'")
            for option in error["ctx"]["expected"].replace(" or ", ", ").split(", ")
        ]
        return f"{path} is one of {', '.join(options)}, found {error['input']!r}{nearest(error['input'], options)}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{path}: {message[:1].lower()}{message[1:]}, found {error['input']!r}"


def _parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; Python's reader takes time that grows with the square of the parts of a key."""
    if any(piece.count(".") > MOST_PARTS for piece in re.split(r"[\n=,]", text)):
        raise ValueError(f"expected keys of at most {MOST_PARTS} parts, found one of more")
    return tomllib.loads(text)


def _toml_lines(table: Mapping[str, Any]) -> str:
    return "".join(
        f"{_toml_key(key)} = {_toml_text(value)}\n"
        for key, value in table.items()
        if value is not None
    )


def _toml_key(key: str) -> str:
    return (
        key
        if key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
        else _toml_text(key)
    )


def _toml_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_text(item) for item in value)}]"
    raise ConfigError(f"cannot write {value!r} as TOML")


def _toml_value(text: str) -> Any:
    try:
        return _parse_toml(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text

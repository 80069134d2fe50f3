"""Settings: frozen models, their TOML form, and ``section.key=value`` overrides.

A mistake in what a person wrote becomes one sentence with the nearest right name.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from getd.errors import ConfigError, nearest
from getd.visible import lower_first

MAX_KEY_PARTS = 100  # of a dotted key, a.b.c; tomllib takes quadratic time


class Settings(BaseModel):
    """The base of every settings model: frozen, checked once, unknown keys rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


S = TypeVar("S", bound=Settings)


def build(model: type[S], values: Mapping[str, Any], section: str) -> S:
    """Build a settings model; the first mistake is a :class:`ConfigError` that names its key."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_explain(model, error.errors()[0], section)) from None


def _explain(model: type[Settings], error: ErrorDetails, section: str) -> str:
    keys = [section, *map(str, error["loc"])]
    name = ".".join(keys)
    value = error["input"]

    if error["type"] == "extra_forbidden":
        return f"no setting {name}{nearest(keys[-1], list(model.model_fields))}"
    if error["type"] == "missing":
        return f"setting {name} is missing"
    if error["type"] == "literal_error" and isinstance(value, str):
        options = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        hint = nearest(value, options.split(", "))
        return f"{name} is one of {options}, found {value!r}{hint}"
    message = lower_first(error["msg"].removeprefix("Value error, "))
    return f"{name}: {message}, found {value!r}"


def read_toml(path: Path | str) -> dict[str, Any]:
    """Read a TOML file; one that cannot be read or parsed is a :class:`ConfigError`."""
    try:
        return _parse_toml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        message = f"expected UTF-8, found byte 0x{byte:02x} at offset {error.start}"
        raise ConfigError(f"{path}: {message}") from None
    except RecursionError:
        raise ConfigError(f"{path}: expected TOML, found values nested too deeply") from None
    except ValueError as error:  # bad TOML, or a number or a date that Python cannot hold
        raise ConfigError(f"{path}: {lower_first(str(error))}") from None


def _parse_toml(text: str) -> dict[str, Any]:
    if any(piece.count(".") > MAX_KEY_PARTS for piece in re.split(r"[\n=,]", text)):
        raise ValueError(f"expected keys of at most {MAX_KEY_PARTS} parts, found one of more")
    return tomllib.loads(text)


def section_of(tables: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return a section of a config, empty if it is missing.

    >>> section_of({"model": {"name": "getd"}}, "model"), section_of({}, "training")
    ({'name': 'getd'}, {})
    """
    values = tables.get(section, {})
    if not isinstance(values, Mapping):
        raise ConfigError(f"expected a section [{section}], found {section} = {values!r}")
    return dict(values)


def override(tables: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Apply ``section.key=value`` to a copy; a value is TOML, or else plain text.

    >>> override({"training": {"epochs": 5}}, ["training.epochs=7", "model.name=getd"])
    {'training': {'epochs': 7}, 'model': {'name': 'getd'}}
    """
    result = dict(tables)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        section, _, key = name.partition(".")
        if not (equals and section and key):
            raise ConfigError(f"expected section.key=value, found {assignment!r}")
        if not isinstance(result.get(section, {}), Mapping):
            raise ConfigError(f"{section!r} is a single value, not a section, in {assignment!r}")

        value: Any = text.strip()
        with suppress(ValueError, RecursionError):
            value = _parse_toml(f"value = {value}")["value"]
        result = with_values(result, {name: value})
    return result


def with_values(tables: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy with values in it, each named ``section.key``.

    >>> with_values({"data": "demo", "training": {"epochs": 5}}, {"training.decay": 0.9})
    {'data': 'demo', 'training': {'epochs': 5, 'decay': 0.9}}
    """
    result = dict(tables)
    for name, value in values.items():
        section, _, key = name.partition(".")
        result[section] = {**result.get(section, {}), key: value}
    return result


def to_toml(tables: Mapping[str, Any]) -> str:
    """Write values and tables as TOML; tables in a list are inline. None (unset) is left out.

    >>> print(to_toml({"data": "demo", "model": {"ranks": [2, 3], "shape": None}}), end="")
    data = "demo"
    <BLANKLINE>
    [model]
    ranks = [2, 3]
    """
    top = ""
    sections = []
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines = [_toml_line(*item) for item in value.items()]
            sections.append(f"[{_toml_key(key)}]\n{''.join(lines)}")
        else:
            top += _toml_line(key, value)
    return "\n".join([top, *sections] if top else sections)


def _toml_line(key: str, value: Any) -> str:
    return "" if value is None else f"{_toml_key(key)} = {_toml_value(value)}\n"


def _toml_key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        given = {key: item for key, item in value.items() if item is not None}
        items = [f"{_toml_key(key)} = {_toml_value(item)}" for key, item in given.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        lines = [f"  {_toml_value(item)},\n" for item in value]
        return f"[\n{''.join(lines)}]"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    raise ConfigError(f"cannot write {value!r} as TOML")

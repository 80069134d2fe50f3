"""The JSON files of a run as checked values: what a file must hold, and one line where it holds another thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Ge
from pydantic import (
    BaseModel,
    ConfigDict,
    FiniteFloat,
    PositiveInt,
    ValidationError,
)

from getd.errors import RunError

Seconds = Annotated[FiniteFloat, Ge(0)]
SHOWN = 60  # letters of a wrong value that are shown


class Record(BaseModel):
    """A JSON object with at least these keys; numbers are numbers, not texts."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class HistoryLine(Record):
    """A line of ``history.jsonl``."""

    epoch: PositiveInt
    loss: FiniteFloat
    seconds: Seconds
    valid_mrr: FiniteFloat | None = None
    valid_loss: FiniteFloat | None = None


class SignatureRecord(Record):
    """A relation in ``roles.json``."""

    name: str
    roles: list[str]


class RolesRecord(Record):
    """``roles.json``: the name of the data, its relations by label, and what tells its facts from all others."""

    data: str
    relations: dict[str, SignatureRecord]
    fingerprint: str | None = None  # None: a run from before it was kept


R = TypeVar("R", bound=BaseModel)


def parse_json(text: str, path: Path | str) -> Any:
    """What a JSON text holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: expected JSON, found a broken file ({error})") from None


def check_record(model: type[R], value: Any, path: Path | str) -> R:
    """A JSON value as a record; one of another shape is refused with the first thing that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = error.errors()[0]
        key = ".".join(map(str, wrong["loc"])) or "it"
        if wrong["type"] == "missing":
            raise RunError(f"{path}: expected {key}, found none") from None
        if wrong["type"] == "model_type":
            raise RunError(
                f"{path}: expected a JSON object, found {shown(wrong['input'])}"
            ) from None
        expected = wrong["msg"].removeprefix("Input should be ")
        raise RunError(
            f"{path}: expected {key} to be {expected}, found {shown(wrong['input'])}"
        ) from None


def shown(value: Any) -> str:
    """A value as a message shows it, not too long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"

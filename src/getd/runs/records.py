"""The files of a run as checked values; a file of another shape is refused in one line."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, FiniteFloat, PositiveInt, ValidationError

from getd.errors import RunError

Seconds = Annotated[FiniteFloat, Ge(0)]
MAX_SHOWN = 60  # letters of a wrong value in a message


class StoredConfig(dict[str, Any]):
    """The tables of ``config.toml`` as the file has them, with typed access to single values."""

    @property
    def model_name(self) -> str:
        return str(self["model"]["name"])

    @property
    def model_values(self) -> dict[str, Any]:
        """The settings of the model, not checked."""
        return {key: value for key, value in self["model"].items() if key != "name"}

    @property
    def validation_sample(self) -> int | None:
        """The number of facts drawn from validation; None: all."""
        sample = self.get("training", {}).get("validation_sample")
        return sample if isinstance(sample, int) else None

    @property
    def learns_relations(self) -> bool:
        """Whether the model was trained to predict relations."""
        return bool(self.get("training", {}).get("relation_loss"))


class Record(BaseModel):
    """A JSON object with at least these keys; numbers are numbers, not texts."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


class HistoryLine(Record):
    """A line of ``history.jsonl``: an epoch."""

    epoch: PositiveInt
    loss: FiniteFloat
    seconds: Seconds
    valid_mrr: FiniteFloat | None = None
    valid_loss: FiniteFloat | None = None


class SignatureRecord(Record):
    """A relation in ``roles.json``."""

    name: str
    roles: list[str]


class MemberRecord(Record):
    """A run that a combined run was made of."""

    run: str
    model: str
    fingerprint: str  # of its weights
    valid_mrr: FiniteFloat


class CombinationRecord(Record):
    """``combined.json``: the members of a combined run, their weights and what fitted these."""

    members: list[MemberRecord]
    weights: dict[str, list[FiniteFloat]]  # of each member, by arity and position: "4-0"
    valid_mrr: FiniteFloat  # without a memory
    sample: int | None = None  # validation facts that the weights were fitted on; None: all
    filter: list[str]  # splits whose known answers were left out


class RolesRecord(Record):
    """``roles.json``: the name of the data and its relations by label."""

    data: str
    relations: dict[str, SignatureRecord]
    fingerprint: str | None = None  # of the facts; None: a run from before it was kept


R = TypeVar("R", bound=BaseModel)


def parse_record(model: type[R], text: str, path: Path | str) -> R:
    """Parse JSON; a value of another shape is refused with the first thing that is wrong."""
    try:
        return model.model_validate(json.loads(text))
    except ValidationError as error:
        mistake = error.errors()[0]
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: expected JSON, found a broken file ({error})") from None

    key = ".".join(map(str, mistake["loc"])) or "it"
    if mistake["type"] == "missing":
        raise RunError(f"{path}: expected {key}, found none")
    if mistake["type"] == "model_type":
        raise RunError(f"{path}: expected a JSON object, found {shown(mistake['input'])}")
    expected = mistake["msg"].removeprefix("Input should be ")
    raise RunError(f"{path}: expected {key} to be {expected}, found {shown(mistake['input'])}")


def shown(value: Any) -> str:
    """Show a value in a message, shortened."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"

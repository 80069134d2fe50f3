"""JSON objects with a checked form."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from getd.errors import RunError


class Record(BaseModel):
    """A JSON object with at least these keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, without keys that were not given."""
        return self.model_dump(mode="json", exclude_unset=True)


class FittedFile(Record):
    """A JSON file with what was fitted to a model."""

    expected: ClassVar[str]  # what the file should hold, for the message about one that does not

    @classmethod
    def parse(cls, value: Any, path: Path) -> Self:
        try:
            return cls.model_validate(value)
        except ValidationError:
            raise RunError(f"{path}: expected {cls.expected}") from None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; a key that a file did not have is not added."""
        return self.model_dump(mode="json", include=self.model_fields_set)

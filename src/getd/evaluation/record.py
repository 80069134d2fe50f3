"""The JSON objects of an evaluation."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A JSON object with at least these keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: text keys, plain numbers, and no key that was not given."""
        return self.model_dump(mode="json", exclude_unset=True)

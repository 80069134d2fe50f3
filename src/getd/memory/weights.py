"""The weights of a memory, by arity and position, and the file that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, Field, FiniteFloat, ValidationError
from torch import Tensor

from getd.config import Settings
from getd.errors import RunError


class SourceWeights(Settings):
    """The weights of one source."""

    share: FiniteFloat = 0.0
    log_share: FiniteFloat = 0.0


class MemoryWeights(Settings):
    """The weights at one position: of the model, and of the sources of the memory."""

    scale: FiniteFloat = 1.0  # of the model
    sources: dict[str, SourceWeights] = Field(default_factory=dict)  # by name; others weigh 0

    def as_tensor(self, sources: Sequence[str]) -> Tensor:
        """Return the weights in the order of :meth:`~getd.memory.memory.Memory.features`."""
        pairs = []
        for name in sources:
            weights = self.sources.get(name, SourceWeights())
            pairs += [weights.share, weights.log_share]
        return torch.tensor(pairs, dtype=torch.float64)


class MemoryFile(Settings):
    """``memory.json``: the weights of a memory, how they were fitted, and to which model."""

    model_config = ConfigDict(extra="ignore")

    weights: dict[str, MemoryWeights]  # by arity and position: "4-0"
    valid_mrr: FiniteFloat | None = None
    sample: int | None = None  # validation facts that they were fitted on; None: all
    filter: tuple[str, ...] | None = None  # splits whose known answers were left out; None: all
    fitted_to: str | None = None  # the fingerprint of a model; None: from before it was kept

    @classmethod
    def parse(cls, value: Any, path: Path) -> MemoryFile:
        """Check what a JSON file holds."""
        try:
            return cls.model_validate(value)
        except ValidationError:
            raise RunError(f"{path}: expected the weights of a memory, found others") from None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form; a key that a file did not have is not added."""
        return self.model_dump(mode="json", include=self.model_fields_set)

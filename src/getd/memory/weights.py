"""The weights of a memory, by arity and position, and the file that keeps them."""

from collections.abc import Sequence

import torch
from pydantic import Field, FiniteFloat
from torch import Tensor

from getd.config import Settings
from getd.evaluation.record import FittedFile


class SourceWeights(Settings):
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


class MemoryFile(FittedFile):
    """``memory.json``: the weights of a memory, how they were fitted, and to which model."""

    expected = "the weights of a memory, found others"

    weights: dict[str, MemoryWeights]  # by arity and position: "4-0"
    valid_mrr: FiniteFloat | None = None
    sample: int | None = None  # validation facts that they were fitted on; None: all
    filter: tuple[str, ...] | None = None  # splits whose known answers were left out; None: all
    fitted_to: str | None = None  # the fingerprint of a model; None: from before it was kept

    @property
    def paired(self) -> set[str]:
        """The arities in which two given entities have weights."""
        arities = set()
        for slot, weights in self.weights.items():
            if any(name.count("+") == 1 for name in weights.sources):
                arities.add(slot.partition("-")[0])
        return arities

"""Everything a training needs to go on as if it had never stopped, in one file that is replaced in one step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from getd.errors import RunError
from getd.facts.files import atomic_path
from getd.training.average import Weights


@dataclass
class Progress:
    """Where a training stands."""

    epoch: int = 1  # the one under way, from 1
    batches_done: int = 0  # of this epoch
    loss_sum: float = 0.0  # over the facts of this epoch so far
    n_facts: int = 0
    seconds: float = 0.0  # of this epoch so far, training alone
    best_mrr: float = -1.0
    best_epoch: int = 0
    worse: int = 0  # validations since the best
    finished: bool = False
    steps: int = 0  # optimiser steps in all
    generator: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.uint8))  # before the epoch under way

    def plain(self) -> dict[str, Any]:
        """The fields that are no tensors."""
        return {name: value for name, value in vars(self).items() if not isinstance(value, Tensor)}


def copy_weights(module: nn.Module) -> Weights:
    """A copy of all weights and buffers: later steps must not change it."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def save_checkpoint(path: Path, progress: Progress, parts: dict[str, Weights], settings: dict[str, Any]) -> None:
    """Write the state of a training: tensors by part (``model``, ``average``, ``optimizer`` …), and random numbers."""
    tensors = {f"{part}/{name}": tensor for part, weights in parts.items() for name, tensor in weights.items()}
    tensors |= {"random/torch": torch.get_rng_state(), "random/batches": progress.generator}
    metadata = {"progress": json.dumps(progress.plain()), "settings": json.dumps(settings)}
    with atomic_path(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata)


def load_checkpoint(path: Path) -> tuple[Progress, dict[str, Weights], dict[str, Any]]:
    """What :func:`save_checkpoint` wrote: the progress, tensors by part, and the settings."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        progress = Progress(**json.loads(metadata["progress"]))
        settings = json.loads(metadata["settings"])
    except Exception as error:
        raise RunError(f"{path}: expected a checkpoint, found a broken file ({error})") from None
    parts: dict[str, Weights] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = tensor
    progress.generator = parts["random"]["batches"]
    return progress, parts, settings

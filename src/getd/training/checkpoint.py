"""Everything a training needs to go on as if it had never stopped, in one file that is replaced in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, FiniteFloat, NonNegativeInt, PositiveInt
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from getd.errors import RunError
from getd.io.atomic import atomic_path
from getd.runs.records import Record, Seconds, check_record, parse_json
from getd.runs.stored import check_tensors
from getd.training.moving_average import Weights

PARTS = ("model", "best", "average", "optimizer", "regime", "random")
HINT = "; --overwrite trains it from the first epoch"


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
    generator: Tensor = field(
        default_factory=lambda: torch.zeros(0, dtype=torch.uint8)
    )  # before the epoch under way

    def plain(self) -> dict[str, Any]:
        """The fields that are no tensors."""
        return {name: value for name, value in vars(self).items() if not isinstance(value, Tensor)}


def copy_weights(module: nn.Module) -> Weights:
    """A copy of all weights and buffers: later steps must not change it."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def save_checkpoint(
    path: Path, progress: Progress, parts: dict[str, Weights], settings: dict[str, Any]
) -> None:
    """Write the state of a training: tensors by part (``model``, ``average``, ``optimizer`` …), and random numbers."""
    tensors = {
        f"{part}/{name}": tensor
        for part, weights in parts.items()
        for name, tensor in weights.items()
    }
    tensors |= {"random/torch": torch.get_rng_state(), "random/batches": progress.generator}
    metadata = {"progress": json.dumps(progress.plain()), "settings": json.dumps(settings)}
    with atomic_path(path) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata
        )


@dataclass(frozen=True)
class Head:
    """What the head of a checkpoint says."""

    progress: Progress  # without its generator
    settings: Mapping[str, Any]  # of training, with which it was written
    shapes: Mapping[str, list[int]]  # of the weights of the model


class _PlainProgress(Record):
    """The fields of :class:`Progress` that are no tensors."""

    model_config = ConfigDict(extra="forbid")

    epoch: PositiveInt
    batches_done: NonNegativeInt
    loss_sum: FiniteFloat
    n_facts: NonNegativeInt
    seconds: Seconds
    best_mrr: FiniteFloat
    best_epoch: NonNegativeInt
    worse: NonNegativeInt
    finished: bool
    steps: NonNegativeInt


def read_head(path: Path) -> Head:
    """The progress, the settings and the shapes of a checkpoint, before its tensors are read."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            shapes = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise _broken(path, error) from None
    values = {}
    for name, record in (("progress", _PlainProgress), ("settings", Record)):
        if name not in metadata:
            raise _broken(path, f"it has no {name}")
        try:
            value = parse_json(metadata[name], name)
            check_record(record, value, name)
        except RunError as error:
            raise _broken(path, error) from None
        values[name] = value
    of_model = {
        name.removeprefix("model/"): shape
        for name, shape in shapes.items()
        if name.startswith("model/")
    }
    return Head(Progress(**values["progress"]), values["settings"], of_model)


def load_checkpoint(path: Path) -> tuple[Progress, dict[str, Weights], dict[str, Any]]:
    """What :func:`save_checkpoint` wrote: the progress, tensors by part, and the settings."""
    head = read_head(path)
    try:
        tensors = load_file(path)
    except Exception as error:
        raise _broken(path, error) from None
    parts: dict[str, Weights] = {part: {} for part in PARTS}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        if part not in parts:
            raise _broken(path, f"it has an unknown part {part!r}")
        parts[part][rest] = tensor
    head.progress.generator = parts["random"].get("batches", head.progress.generator)
    return head.progress, parts, dict(head.settings)


def check_checkpoint(
    path: Path,
    parts: Mapping[str, Weights],
    like: Mapping[str, Weights],
    optimizer: Weights,
    n_entities: int,
) -> None:
    """Refuse tensors that are not those of this training: by their names, shapes and types, and what is not finite.

    ``like`` are the parts of a training that has not begun, and ``optimizer`` its optimiser's as they will be.
    """
    random = {"torch": torch.get_rng_state(), "batches": torch.Generator().get_state()}
    best = like["model"] if parts["best"] else {}
    wanted = {**like, "best": best, "optimizer": optimizer, "random": random}
    for part, tensors in wanted.items():
        stored, expected = (
            {f"{part}/{name}": tensor for name, tensor in each.items()}
            for each in (parts[part], tensors)
        )
        check_tensors(path, stored, expected, HINT)

    for name, ids in parts["regime"].items():
        if ids.numel() and not (ids.min() >= 0 and ids.max() < n_entities):
            raise RunError(
                f"{path}: expected regime/{name} of entities that there are, found others{HINT}"
            )
    try:
        for state in parts["random"].values():
            torch.Generator().set_state(state)
    except RuntimeError:
        raise RunError(
            f"{path}: expected the state of a random generator, found another{HINT}"
        ) from None


def _broken(path: Path, reason: object) -> RunError:
    return RunError(f"{path}: expected a checkpoint, found a broken file ({reason}){HINT}")

"""Checkpoints: all that a training needs to resume as if it had never stopped.

One file, replaced in one step. Its head holds the progress and the settings as JSON, its body the
tensors, named ``part/name``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import ConfigDict, FiniteFloat, NonNegativeInt, PositiveInt
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from getd.errors import RunError
from getd.io.atomic import atomic_path
from getd.runs.config import TrainSettings
from getd.runs.integrity import check_tensors
from getd.runs.records import Record, Seconds, parse_record
from getd.training.moving_average import Weights

Parts = dict[str, Weights]  # the tensors of a checkpoint, by part and name
PARTS = ("model", "best", "average", "optimizer", "regime", "random")
HINT = "; --overwrite trains it from the first epoch"


class Progress(Record):
    """How far a training is."""

    model_config = ConfigDict(frozen=False, extra="forbid")

    # Of the epoch under way.
    epoch: PositiveInt  # from 1
    batches_done: NonNegativeInt
    loss_sum: FiniteFloat  # over facts
    n_facts: NonNegativeInt
    seconds: Seconds  # of training alone

    # Of the whole training.
    best_mrr: FiniteFloat
    best_epoch: NonNegativeInt  # 0: nothing was validated yet
    worse: NonNegativeInt  # validations since the best
    finished: bool  # patience has ended
    steps: NonNegativeInt  # of the optimiser

    @classmethod
    def start(cls) -> Self:
        """The progress of a training that has not begun."""
        return cls(
            epoch=1,
            batches_done=0,
            loss_sum=0.0,
            n_facts=0,
            seconds=0.0,
            best_mrr=-1.0,
            best_epoch=0,
            worse=0,
            finished=False,
            steps=0,
        )

    def begin_next_epoch(self) -> None:
        """Count the epoch as done, and start the counts of the next."""
        self.epoch += 1
        self.batches_done = 0
        self.loss_sum = 0.0
        self.n_facts = 0
        self.seconds = 0.0


def copy_weights(module: nn.Module) -> Weights:
    """Copy all weights and buffers: later steps must not change them."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def save_checkpoint(path: Path, progress: Progress, parts: Parts, settings: TrainSettings) -> None:
    tensors = {name: tensor.contiguous() for name, tensor in _joined(parts).items()}
    metadata = {
        "progress": json.dumps(progress.model_dump()),
        "settings": json.dumps(settings.model_dump(mode="json")),
    }
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata)


@dataclass(frozen=True)
class Head:
    progress: Progress
    settings: Mapping[str, Any]  # of training, as they were when it was written
    shapes: Mapping[str, list[int]]  # of the weights of the model


def read_head(path: Path) -> Head:
    """Read the head of a checkpoint, without its tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            shapes = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise _broken(path, error) from None

    for name in ("progress", "settings"):
        if name not in metadata:
            raise _broken(path, f"it has no {name}")
    try:
        progress = parse_record(Progress, metadata["progress"], "progress")
        settings = parse_record(Record, metadata["settings"], "settings").model_extra or {}
    except RunError as error:
        raise _broken(path, error) from None

    prefix = "model/"
    of_model = [name for name in shapes if name.startswith(prefix)]
    return Head(progress, settings, {name.removeprefix(prefix): shapes[name] for name in of_model})


def load_checkpoint(path: Path) -> tuple[Progress, Parts]:
    """Read the progress and the tensors, by part and name."""
    progress = read_head(path).progress
    try:
        tensors = load_file(path)
    except Exception as error:
        raise _broken(path, error) from None

    parts: Parts = {part: {} for part in PARTS}
    for key, tensor in tensors.items():
        part, _, name = key.partition("/")
        if part not in parts:
            raise _broken(path, f"it has an unknown part {part!r}")
        parts[part][name] = tensor
    return progress, parts


def check_checkpoint(path: Path, parts: Parts, like: Parts, n_entities: int) -> None:
    """Refuse tensors that are not those of this training.

    ``like`` are the parts that it expects: names, shapes and types must agree. Weights must be
    finite, entities known, and the states of random generators valid.
    """
    check_tensors(path, _joined(parts), _joined(like), HINT)
    for name, ids in parts["regime"].items():
        if ids.numel() and not (ids.min() >= 0 and ids.max() < n_entities):
            expected_ids = f"regime/{name} of entities that there are"
            raise RunError(f"{path}: expected {expected_ids}, found others{HINT}")

    try:
        for state in parts["random"].values():
            torch.Generator().set_state(state)
    except RuntimeError:
        message = "expected the state of a random generator, found another"
        raise RunError(f"{path}: {message}{HINT}") from None


def _joined(parts: Parts) -> Weights:
    """The tensors of all parts, named ``part/name``."""
    joined = {}
    for part, weights in parts.items():
        for name, tensor in weights.items():
            joined[f"{part}/{name}"] = tensor
    return joined


def _broken(path: Path, reason: object) -> RunError:
    return RunError(f"{path}: expected a checkpoint, found a broken file ({reason}){HINT}")

"""The model, the memory and the calibration that a run folder keeps; whatever does not fit together is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from getd.calibration.calibrate import Calibration, CalibrationFile
from getd.errors import GetdError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.weights import MemoryFile, MemoryWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ModelSizes, ScoringModel
from getd.models.registry import make_model, model_settings
from getd.models.settings import ModelSettings
from getd.runs.fingerprint import text_fingerprint, weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.sizes import sizes

MAKERS = (torch.randn, torch.empty, torch.zeros, torch.ones)  # what models are made of
SMALL = 2**16  # numbers that anything may have


def build_model(
    name: str,
    settings: ModelSettings,
    counted: Mapping[str, Any],
    generator: torch.Generator | None = None,
) -> ScoringModel:
    """Build a model from its settings and its sizes."""
    counts = counted["n_entities"], counted["n_relations"], counted["arities"]
    return make_model(name, settings, ModelSizes(*counts, counted.get("roles")), generator)


def read_model(folder: RunFolder, kb: KnowledgeBase) -> ScoringModel:
    """Read a model with its weights, which must be finite and fit its settings and sizes."""
    values = dict(folder.read_config()["model"])
    name = values.pop("name")
    counted = checked_sizes(folder, kb)
    path = folder.path / "weights.safetensors"
    shapes = folder.read_shapes()

    with bounded(folder, max(map(prod, shapes.values()), default=0)):
        model = build_model(name, model_settings(name, values), counted)
    check_shapes(path, model, shapes)

    weights = folder.read_weights()
    check_tensors(path, weights, model.state_dict())
    fill(model, weights, path)
    return model.eval()


def read_memory(folder: RunFolder, fingerprint: str) -> dict[str, MemoryWeights] | None:
    """The weights of its memory; None where they were fitted to other weights than those of this fingerprint."""
    stored = MemoryFile.parse(folder.read_json("memory.json"), folder.path / "memory.json")
    return stored.weights if stored.fitted_to in (None, fingerprint) else None


def read_calibration(folder: RunFolder, fingerprint: str) -> Calibration | None:
    """Its calibration; None where it was fitted to another model than that of this fingerprint."""
    value = folder.read_json("calibration.json")
    stored = CalibrationFile.parse(value, folder.path / "calibration.json")
    return stored.calibration if stored.fitted_to in (None, fingerprint) else None


def model_fingerprint(model: ScoringModel, of_weights: str | None = None) -> str:
    """What tells a model, with its memory, from others; ``of_weights`` where that of its weights is known."""
    memory: Mapping[str, MemoryWeights] = {}
    if isinstance(model, WithMemory):
        memory = model.weights
        model = model.model
    plain = {name: weights.model_dump() for name, weights in memory.items()}
    return text_fingerprint(
        of_weights or weights_fingerprint(model.state_dict()), json.dumps(plain, sort_keys=True)
    )


def checked_sizes(folder: RunFolder, kb: KnowledgeBase) -> dict[str, Any]:
    """What ``model.json`` says, if it is what the names and the facts say."""
    path, stored = folder.path / "model.json", folder.read_json("model.json")
    for key, size in sizes(kb).items():
        if stored.get(key) != size:
            expected = key if key == "roles" else f"{key} = {size}"
            shown = "others" if key == "roles" else repr(stored.get(key))[:60]
            raise RunError(
                f"{path}: expected {expected}, as the names and facts say, found {shown}"
            )
    return stored


def check_tensors(
    path: Path,
    tensors: Mapping[str, torch.Tensor],
    wanted: Mapping[str, torch.Tensor],
    hint: str = "",
) -> None:
    """Refuse tensors of a file that have another name, shape or type than those wanted, or are not finite."""
    for name in {**wanted, **tensors}:
        shapes = [list(each[name].shape) if name in each else "none" for each in (wanted, tensors)]
        if shapes[0] != shapes[1]:
            raise RunError(f"{path}: expected {name} of shape {shapes[0]}, found {shapes[1]}{hint}")
        types = [str(each[name].dtype).removeprefix("torch.") for each in (wanted, tensors)]
        if types[0] != types[1]:
            raise RunError(f"{path}: expected {name} of {types[0]}, found {types[1]}{hint}")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise RunError(f"{path}: expected finite weights, found NaN or infinity{hint}")


def fill(model: ScoringModel, weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Give a model the weights of a file; weights of another model are refused."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        wrong = " ".join(str(error).split()[:24])
        raise RunError(
            f"{path}: expected the weights of this model, found others ({wrong} …)"
        ) from None


@contextmanager
def bounded(folder: RunFolder, most: float) -> Iterator[None]:
    """While a model is made, no tensor has more numbers than that; settings that make no model are refused."""
    mistakes = (
        GetdError,
        TypeError,
        ValueError,
        RuntimeError,
        IndexError,
        OverflowError,
        MemoryError,
    )
    try:
        with _Bounded(most):
            yield
    except mistakes as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"{folder.path}: its settings and sizes make no model ({reason})") from None


class _Bounded(TorchFunctionMode):
    def __init__(self, most: float) -> None:
        super().__init__()
        self._most = most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shape = args if not args or isinstance(args[0], int) else args[0]
        if func in MAKERS and prod(shape) > max(self._most, SMALL):
            raise ValueError(f"a tensor of shape {list(shape)}, larger than any of its weights")
        return func(*args, **(kwargs or {}))


def check_shapes(path: Path, model: ScoringModel, stored: Mapping[str, list[int]]) -> None:
    """Refuse a file of weights that are not the model's, before they are read."""
    wanted = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    for name in {**wanted, **stored}:
        if wanted.get(name) != stored.get(name):
            shapes = wanted.get(name, "none"), stored.get(name, "none")
            raise RunError(f"{path}: expected {name} of shape {shapes[0]}, found {shapes[1]}")

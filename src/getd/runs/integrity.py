"""Refuse a run whose files do not fit together, before anything large is built or read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from getd.errors import GetdError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ModelSizes
from getd.runs.folder import RunFolder
from getd.runs.sizes import model_sizes, sizes_record

FACTORIES = (torch.randn, torch.empty, torch.zeros, torch.ones)  # what models make tensors with
MIN_BOUND = 2**16  # numbers that any tensor may have

# What wrong settings and sizes make of the constructor of a model.
MISTAKES = (GetdError, TypeError, ValueError, RuntimeError, IndexError, OverflowError, MemoryError)

Tensors = Mapping[str, Tensor]


def check_sizes(folder: RunFolder, kb: KnowledgeBase) -> ModelSizes:
    """Return the sizes of a knowledge base; ``model.json`` must say the same."""
    stored = folder.read_json("model.json")
    sizes = model_sizes(kb)
    if "names" not in stored:  # a run from before relations of one name had a vector in common
        sizes = replace(sizes, names=None)
    for key, size in sizes_record(sizes).items():
        value = stored.get(key)
        if value != size:
            difference = f"{key} = {size}, as the names and facts say, found {repr(value)[:60]}"
            if key == "roles":  # they are long
                difference = "roles, as the names and facts say, found others"
            raise RunError(f"{folder.path / 'model.json'}: expected {difference}")
    return sizes


@contextmanager
def bounded(folder: RunFolder, limit: float) -> Iterator[None]:
    """Refuse settings and sizes that make no model, or one with tensors of more numbers."""
    try:
        with _Bounded(limit):
            yield
    except MISTAKES as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"{folder.path}: its settings and sizes make no model ({reason})") from None


class _Bounded(TorchFunctionMode):
    """Refuses tensors that are larger than a bound, as they are made."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = max(limit, MIN_BOUND)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shape = args if not args or isinstance(args[0], int) else args[0]
        if func in FACTORIES and prod(shape) > self._limit:
            raise ValueError(f"a tensor of shape {list(shape)}, larger than any of its weights")
        return func(*args, **(kwargs or {}))


def check_tensors(path: Path, tensors: Tensors, expected: Tensors, hint: str = "") -> None:
    """Refuse tensors of a file with another name, shape or type, or with infinite numbers."""
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    check_shapes(path, shapes, expected, hint)

    for name, tensor in tensors.items():
        if tensor.dtype != expected[name].dtype:
            types = f"{expected[name].dtype}, found {tensor.dtype}".replace("torch.", "")
            raise RunError(f"{path}: expected {name} of {types}{hint}")
        if not tensor.isfinite().all():
            raise RunError(f"{path}: expected finite weights, found NaN or infinity{hint}")


def check_shapes(
    path: Path, shapes: Mapping[str, list[int]], expected: Tensors, hint: str = ""
) -> None:
    """Refuse a file of tensors by the names and shapes in its head."""
    for name in {**expected, **shapes}:
        shape = list(expected[name].shape) if name in expected else "none"
        stored = shapes.get(name, "none")
        if stored != shape:
            raise RunError(f"{path}: expected {name} of shape {shape}, found {stored}{hint}")

"""Read the model, the memory and the calibration of a run folder."""

import json
from math import prod
from typing import TypeVar

from getd.calibration.calibrate import CalibrationFile
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.weights import MemoryFile
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import make_model, model_settings
from getd.runs.fingerprint import text_fingerprint, weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.integrity import bounded, check_shapes, check_sizes, check_tensors

F = TypeVar("F", MemoryFile, CalibrationFile)


def read_model(folder: RunFolder, kb: KnowledgeBase) -> ScoringModel:
    """Read a model with its weights, which must be finite and fit its settings and sizes."""
    config = folder.read_config()
    sizes = check_sizes(folder, kb)
    path = folder.path / "weights.safetensors"
    shapes = folder.read_shapes()

    # No tensor of the model may be larger than the largest one of the file.
    with bounded(folder, max(map(prod, shapes.values()), default=0)):
        settings = model_settings(config.model_name, config.model_values)
        model = make_model(config.model_name, settings, sizes)
    expected = model.state_dict()
    check_shapes(path, shapes, expected)

    weights = folder.read_weights()
    check_tensors(path, weights, expected)
    model.load_state_dict(weights)
    return model.eval()


def read_fitted(folder: RunFolder, name: str, kind: type[F], fingerprint: str) -> F | None:
    """Read what was fitted; None if it was to a model with another fingerprint."""
    stored = kind.parse(folder.read_json(name), folder.path / name)
    return stored if stored.fitted_to in (None, fingerprint) else None


def model_fingerprint(model: ScoringModel, of_weights: str | None = None) -> str:
    """Identify a model with its memory; ``of_weights`` is that of its weights, if known."""
    memory = model.weights if isinstance(model, WithMemory) else {}
    plain = {name: weights.model_dump() for name, weights in memory.items()}
    of_weights = of_weights or weights_fingerprint(model.bare.state_dict())
    return text_fingerprint(of_weights, json.dumps(plain, sort_keys=True))

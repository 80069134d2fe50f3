"""Read the model, the memory and the calibration of a run folder."""

from __future__ import annotations

import json
from math import prod

from getd.calibration.calibrate import Calibration, CalibrationFile
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.weights import MemoryFile, MemoryWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import make_model, model_settings
from getd.runs.fingerprint import text_fingerprint, weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.integrity import bounded, check_shapes, check_sizes, check_tensors


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


def read_memory(folder: RunFolder, fingerprint: str) -> dict[str, MemoryWeights] | None:
    """Read the weights of a memory; None if they were fitted to weights of another fingerprint."""
    stored = MemoryFile.parse(folder.read_json("memory.json"), folder.path / "memory.json")
    return stored.weights if stored.fitted_to in (None, fingerprint) else None


def read_calibration(folder: RunFolder, fingerprint: str) -> Calibration | None:
    """Read a calibration; None if it was fitted to a model with another fingerprint."""
    value = folder.read_json("calibration.json")
    stored = CalibrationFile.parse(value, folder.path / "calibration.json")
    return stored.calibration if stored.fitted_to in (None, fingerprint) else None


def model_fingerprint(model: ScoringModel, of_weights: str | None = None) -> str:
    """Identify a model with its memory; ``of_weights`` is that of its weights, if known."""
    memory = model.weights if isinstance(model, WithMemory) else {}
    plain = {name: weights.model_dump() for name, weights in memory.items()}
    of_weights = of_weights or weights_fingerprint(model.bare.state_dict())
    return text_fingerprint(of_weights, json.dumps(plain, sort_keys=True))

"""An opened run: its folder, its knowledge base, its model, and what was fitted to the model."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from getd.calibration.calibrate import Calibration, CalibrationFile
from getd.errors import RunError
from getd.evaluation.evaluate import evaluate
from getd.evaluation.protocol import Choice, Provenance
from getd.evaluation.report import Evaluation
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.split import SPLITS
from getd.memory.memory import Memory
from getd.memory.weights import MemoryFile
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.registry import build_model
from getd.runs.fingerprint import text_fingerprint, weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.integrity import bounded, check_shapes, check_sizes, check_tensors

IDENTITY = (  # the files that identify a run
    "config.toml",
    "weights.safetensors",
    "entities.txt",
    "facts.parquet",
    "memory.json",
    "calibration.json",
)
F = TypeVar("F", MemoryFile, CalibrationFile)


@dataclass
class OpenedRun:
    """A run in memory. Training returns one; evaluation, prediction and serving read it."""

    folder: RunFolder
    kb: KnowledgeBase
    model: ScoringModel
    calibration: Calibration = field(default_factory=Calibration)
    notices: Sequence[str] = ()  # messages about the run for the user

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path

    def evaluate(self, split: str = "test", **options: Any) -> Evaluation:
        """Rank the answers of a split; options as for :func:`getd.evaluation.evaluate.evaluate`."""
        memory = self.memory_choice() if self.model.memory_weights is not None else None
        members = self.members_choice() if self.folder.is_combined() else None
        provenance = Provenance(epoch=self.epoch_choice(), memory=memory, members=members)
        return evaluate(self.model, self.kb, split, provenance=provenance, **options)

    def epoch_choice(self) -> Choice:
        """Return the facts by which the epoch of the weights was chosen."""
        if "valid" not in self.kb.splits:
            return Choice(None)
        sample = self.folder.read_config().validation_sample
        return self._choice("environment.json", "validation_filter", sample)

    def memory_choice(self) -> Choice:
        """Return the facts on which the weights of the memory were fitted."""
        sample = self.folder.read_json("memory.json").get("sample")
        return self._choice("memory.json", "filter", sample)

    def members_choice(self) -> Choice:
        """Return the facts on which the weights of the members of an ensemble were fitted."""
        sample = self.folder.read_combination().sample
        return self._choice("combined.json", "filter", sample)

    def fingerprint(self) -> str:
        """Return a hash of the run's weights, names, facts, memory and calibration."""
        digest = sha256()
        for name in IDENTITY:
            path = self.path / name
            digest.update(path.read_bytes() if path.exists() else b"")
        return digest.hexdigest()

    def _choice(self, name: str, key: str, sample: Any) -> Choice:
        """Read a choice on validation with the filter that a file of the run names.

        Older runs do not name it: they left out the known answers of all splits.
        """
        path = self.path / name
        content = self.folder.read_json(name) if path.is_file() else {}
        splits = content.get(key, list(self.kb.splits))
        if not isinstance(splits, list) or not all(split in SPLITS for split in splits):
            raise RunError(f"{path}: expected {key} to name splits, found another thing")
        return Choice("valid", tuple(splits), sample if isinstance(sample, int) else None)


def open_run(path: str | Path, memory: bool = True) -> OpenedRun:
    """Open the folder that training left, with its memory if it has one."""
    folder = RunFolder(Path(path))
    kb = folder.read_knowledge_base()
    run = OpenedRun(folder, kb, read_model(folder, kb))
    notices = []
    weights = folder.read_fingerprint() or weights_fingerprint(run.model.state_dict())

    if memory and folder.has_memory():
        stored = read_fitted(folder, "memory.json", MemoryFile, weights)
        if stored is None:
            notices.append(_fitted_to_another(folder, "memory.json", "remember"))
        else:
            train = run.kb.split("train")
            counts = Memory.from_facts(train, run.kb.n_entities, stored.paired)
            run.model = WithMemory(run.model, counts, stored.weights).eval()

    if folder.is_calibrated():
        fingerprint = model_fingerprint(run.model, weights)
        fitted = read_fitted(folder, "calibration.json", CalibrationFile, fingerprint)
        if fitted is not None:
            run.calibration = fitted.calibration
        elif memory or not folder.has_memory():
            notices.append(_fitted_to_another(folder, "calibration.json", "calibrate"))

    run.notices = tuple(notices)
    return run


def _fitted_to_another(folder: RunFolder, name: str, command: str) -> str:
    reason = f"{folder.path / name} was fitted to another model and is not used"
    return f"{reason}; getd {command} {shlex.quote(str(folder.path))} fits it"


def read_model(folder: RunFolder, kb: KnowledgeBase) -> ScoringModel:
    """Read a model with its weights, which must be finite and fit its settings and sizes."""
    config = folder.read_config()
    sizes = check_sizes(folder, kb)
    path = folder.path / "weights.safetensors"
    shapes = folder.read_shapes()

    # No tensor of the model may be larger than the largest one of the file.
    with bounded(folder, max(map(prod, shapes.values()), default=0)):
        model = build_model(config.model_name, config.model_values, sizes)
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

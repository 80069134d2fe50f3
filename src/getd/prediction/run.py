"""A trained run: evaluate it, ask it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from getd.errors import ConfigError, RunError
from getd.evaluation.calibration import Calibration, calibrate, calibration_facts, reliability
from getd.evaluation.protocol import Choice, filter_splits, known_for_choosing
from getd.evaluation.remembering import choose_weights
from getd.evaluation.report import Evaluation, evaluate, validation_mrr
from getd.evaluation.role_fit import RoleFit
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known import KnownAnswers
from getd.facts.split import SPLITS
from getd.models.base import ScoringModel
from getd.models.memory import Memory, MemoryWeights, Remembering
from getd.models.registry import make_model, model_settings
from getd.prediction.answers import Answer, Answerer
from getd.prediction.joint import answer_jointly
from getd.prediction.question import Names, Question, fill_question, parse_question
from getd.prediction.rating import Rating, rate, suspicious
from getd.prediction.reasons import Reasons, Why
from getd.runs.folder import RunFolder
from getd.runs.sizes import sizes
from getd.settings import build

MAKERS = (torch.randn, torch.empty, torch.zeros, torch.ones)  # what models are made of
SMALL = 2**16  # numbers that anything may have
CHOSEN_LATER = ("memory.json", "calibration.json")  # what a run may be given when it is trained


class Run:
    """A run that was opened: its model and its knowledge base."""

    def __init__(
        self, folder: RunFolder, kb: KnowledgeBase, model: ScoringModel, calibration: Calibration | None = None
    ) -> None:
        self.folder, self.kb, self.model = folder, kb, model
        self.calibration = calibration or Calibration()
        self.notices: tuple[str, ...] = ()  # what a person should know of the training that it comes from

    @property
    def bare_model(self) -> ScoringModel:
        """The model without its memory."""
        return self.model.model if isinstance(self.model, Remembering) else self.model

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def known(self) -> KnownAnswers:
        """The known answers of all splits."""
        return self.kb.known()

    def evaluate(self, split: str = "test", **options: Any) -> Evaluation:
        """Rank the answers of a split; options as for :func:`getd.evaluation.report.evaluate`."""
        memory = self.memory_choice() if isinstance(self.model, Remembering) else None
        return evaluate(self.model, self.kb, split, epoch=self.epoch_choice(), memory=memory, **options)

    def epoch_choice(self) -> Choice:
        """By which facts the epoch was chosen that the weights are of."""
        if "valid" not in self.kb.splits:
            return Choice(None)
        sample = self.folder.read_config().get("training", {}).get("validation_sample")
        return self._choice("environment.json", "validation_filter", sample)

    def memory_choice(self) -> Choice:
        """By which facts the weights of the memory were fitted."""
        return self._choice("memory.json", "filter", self.folder.read_json("memory.json").get("sample"))

    def _choice(self, name: str, key: str, sample: Any) -> Choice:
        """A choice on validation with the filter that a file names.

        Runs that were trained before it was named left out the known answers of all splits.
        """
        path = self.path / name
        kept = self.folder.read_json(name) if path.is_file() else {}
        splits = kept.get(key, list(self.kb.splits)) if isinstance(kept, dict) else None
        if not isinstance(splits, list) or not all(split in SPLITS for split in splits):
            raise RunError(f"{path}: expected {key} to name splits, found another thing")
        return Choice("valid", tuple(splits), sample if isinstance(sample, int) else None)

    def remember(self, sample: int | None = None) -> float:
        """Give the run a memory of its training facts, with weights that are fitted on validation; the MRR there.

        Test is not read.

        ``sample``: fit on so many facts of validation, drawn at random, instead of all.
        """
        memory = Memory.from_facts(self.kb.split("train"), self.kb.n_entities)
        chosen = choose_weights(self.bare_model, memory, self.kb, sample)
        self.model = Remembering(self.bare_model, memory, chosen)
        mrr = validation_mrr(self.model, self.kb.split("valid"), known_for_choosing(self.kb), sample=sample)
        weights = {name: values.model_dump() for name, values in chosen.items()}
        self.folder.forget("calibration.json")  # that of the model without it
        about = {"valid_mrr": mrr, "sample": sample, "filter": filter_splits(self.kb, "valid")}
        self.folder.write_json("memory.json", {"weights": weights, **about})
        self.calibrate(sample)
        return mrr

    def calibrate(self, sample: int | None = None) -> Calibration:
        """Fit on validation what turns scores into probabilities, and keep it in the run.

        ``sample``: fit on so many facts of validation at most, drawn at random.
        """
        self.calibration = calibrate(self.model, self.kb, sample)
        facts, known = calibration_facts(self.model, self.kb, sample), known_for_choosing(self.kb)
        before, after = reliability(self.model, facts, known, [Calibration(), self.calibration])
        found = {"before": before.as_dict(), "after": after.as_dict(), "sample": sample}
        self.folder.write_json("calibration.json", {**self.calibration.model_dump(), "valid": found})
        if find_spec("matplotlib"):
            from getd.prediction.reliability import draw

            draw(self.folder)
        return self.calibration

    def fingerprint(self) -> str:
        """What tells the run from any other: its weights, names, facts, memory and calibration."""
        names = (
            "config.toml",
            "weights.safetensors",
            "entities.txt",
            "facts.parquet",
            "memory.json",
            "calibration.json",
        )
        found = sha256()
        for path in (self.path / name for name in names):
            found.update(path.read_bytes() if path.exists() else b"")
        return found.hexdigest()

    @property
    def answerer(self) -> Answerer:
        """The model with all that it takes to answer."""
        return Answerer(self.model, self.kb, self.known, self.calibration, self.roles)

    @cached_property
    def roles(self) -> RoleFit:
        """The roles of all entities."""
        return RoleFit(self.kb)

    @cached_property
    def reasons(self) -> Reasons:
        """What finds the reasons of answers."""
        return Reasons(self.bare_model, self.kb)

    def predict(self, relation: str, entities: Names, top: int = 10, include_known: bool = False) -> list[Answer]:
        """The best answers of a question; ``?`` marks what is asked for: entities, or the relation.

        Known answers are left out, as they are in evaluation, unless ``include_known``.
        """
        return self.answer([parse_question(self.kb, relation, entities)], top, include_known)[0]

    def answer(
        self,
        questions: Sequence[Question],
        top: int = 10,
        include_known: bool = False,
        known: KnownAnswers | None = None,
        confidence: bool = True,
    ) -> list[list[Answer]]:
        """The best answers of questions that were understood already; ``known`` in place of all known answers."""
        answerer = replace(self.answerer, known=known) if known else self.answerer
        single = [question for question in questions if len(question.open) < 2]
        answered = iter(answerer.answer(single, top, include_known, confidence))
        return [
            next(answered) if len(question.open) < 2 else answer_jointly(answerer, question, top, include_known)
            for question in questions
        ]

    def why(self, question: Question, answer: Answer, top: int = 3) -> list[Why]:
        """The training facts that support an answer most, for each of its entities."""
        return self.why_fact(fill_question(self.kb, question, answer.names), question.open, top)

    def why_fact(self, fact: Facts, positions: Sequence[int], top: int = 3) -> list[Why]:
        """The training facts that support the entities at some positions of one fact."""
        return [self.reasons.why(fact, position, top) for position in positions]

    def score(self, facts: Facts) -> list[Rating]:
        """Rate facts of one arity."""
        return rate(self.answerer, facts)

    def suspicious(
        self, top: int = 20, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Rating]:
        """The known facts that look most like mistakes."""
        return suspicious(self.answerer, top, progress)


def open_run(path: str | Path, memory: bool = True) -> Run:
    """Open the folder that training left, with its memory, if it has one."""
    folder = RunFolder(Path(path))
    kb, config = folder.read_knowledge_base(), folder.read_config()
    counted = _checked_sizes(folder, kb)
    if not isinstance(config.get("model"), dict) or "name" not in config["model"]:
        raise RunError(f"{folder.path / 'config.toml'}: expected a table [model] with a name, found none")
    shapes = folder.read_shapes()
    try:
        with _Bounded(max(map(prod, shapes.values()), default=0)):
            model = build_model(config["model"], counted)
    except (TypeError, ValueError, RuntimeError, IndexError, OverflowError) as error:
        raise RunError(f"{folder.path}: its settings and sizes make no model ({str(error).splitlines()[0]})") from None
    _check_shapes(folder, model, shapes)
    weights, wanted = folder.read_weights(), model.state_dict()
    for name, tensor in weights.items():
        if tensor.dtype != wanted[name].dtype:
            told = f"expected {name} of {wanted[name].dtype}, found {tensor.dtype}".replace("torch.", "")
            raise RunError(f"{folder.path / 'weights.safetensors'}: {told}")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise RunError(f"{folder.path / 'weights.safetensors'}: expected finite weights, found NaN or infinity")
    fill(model, weights, folder.path / "weights.safetensors")
    if memory and folder.has_memory():
        model = Remembering(model, Memory.from_facts(kb.split("train"), kb.n_entities), _memory_weights(folder))
    model.eval()
    return Run(folder, kb, model, _calibration(folder) if memory or not folder.has_memory() else None)


class _Bounded(TorchFunctionMode):
    """Nothing is made that is larger than the largest tensor in the file of weights, whatever the settings say."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shape = args if not args or isinstance(args[0], int) else args[0]
        if func in MAKERS and prod(shape) > max(self._most, SMALL):
            raise ValueError(f"a tensor of shape {list(shape)}, larger than any of its weights")
        return func(*args, **(kwargs or {}))


def _checked_sizes(folder: RunFolder, kb: KnowledgeBase) -> dict[str, Any]:
    """What ``model.json`` says, if it is what the names and the facts say."""
    found, place = folder.read_json("model.json"), folder.path / "model.json"
    if not isinstance(found, dict):
        raise RunError(f"{place}: expected sizes, found another thing")
    for key, size in sizes(kb).items():
        if found.get(key) != size:
            told, other = (key, "others") if key == "roles" else (f"{key} = {size}", found.get(key))
            raise RunError(f"{place}: expected {told}, as the names and facts say, found {other}")
    return found


def _check_shapes(folder: RunFolder, model: ScoringModel, found: Mapping[str, list[int]]) -> None:
    """Refuse a file of weights that are not the model's, before they are read."""
    wanted = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    for name in {**wanted, **found}:
        if wanted.get(name) != found.get(name):
            told = f"expected {name} of shape {wanted.get(name)}, found {found.get(name)}"
            raise RunError(f"{folder.path / 'weights.safetensors'}: {told}".replace("None", "none"))


def _calibration(folder: RunFolder) -> Calibration:
    if not folder.is_calibrated():
        return Calibration()
    try:
        kept = folder.read_json("calibration.json")
        return build(Calibration, {key: kept[key] for key in ("temperature", "confidence")})
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError):
        raise RunError(f"{folder.path / 'calibration.json'}: expected a calibration, found another thing") from None


def _memory_weights(folder: RunFolder) -> dict[str, MemoryWeights]:
    try:
        weights = folder.read_json("memory.json")["weights"]
        return {name: build(MemoryWeights, values) for name, values in weights.items()}
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError):
        raise RunError(f"{folder.path / 'memory.json'}: expected the weights of a memory, found others") from None


def fill(model: ScoringModel, weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Give a model the weights of a file; weights of another model are refused."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        wrong = " ".join(str(error).split()[:24])
        raise RunError(f"{path}: expected the weights of this model, found others ({wrong} …)") from None


def build_model(
    values: Mapping[str, Any], counted: Mapping[str, Any], generator: torch.Generator | None = None
) -> ScoringModel:
    """A model from the ``[model]`` table of a config and from its sizes."""
    name = values["name"]
    settings = model_settings(name, {key: value for key, value in values.items() if key != "name"})
    counts = counted["n_entities"], counted["n_relations"], counted["arities"]
    return make_model(name, settings, *counts, generator, counted.get("roles"))

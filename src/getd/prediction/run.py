"""A trained run: evaluate it, ask it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from getd.calibration.calibrate import Calibration, calibrate, calibration_facts, reliability
from getd.calibration.slot_fit import SlotFit
from getd.errors import RunError
from getd.evaluation.evaluate import Evaluation, evaluate, validation_mrr
from getd.evaluation.protocol import Choice, filter_splits, known_for_choosing
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers
from getd.facts.parse import Names
from getd.facts.split import SPLITS
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory, WithMemory
from getd.models.base import ScoringModel
from getd.prediction.answer import Answer, Answerer
from getd.prediction.beam import answer_jointly
from getd.prediction.explain import Explainer, Why
from getd.prediction.question import Question, fill_question, parse_question
from getd.prediction.rate import Rating, rate, suspicious
from getd.runs.fingerprint import weights_fingerprint
from getd.runs.folder import RunFolder
from getd.runs.lock import owned
from getd.runs.stored import model_fingerprint, read_calibration, read_memory, read_model


class Run:
    """A run that was opened: its model and its knowledge base."""

    def __init__(
        self,
        folder: RunFolder,
        kb: KnowledgeBase,
        model: ScoringModel,
        calibration: Calibration | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        self.folder, self.kb, self.model = folder, kb, model
        self.calibration = calibration or Calibration()
        self.notices = tuple(notices)  # what a user should be told about the run

    @property
    def bare_model(self) -> ScoringModel:
        """The model without its memory."""
        return self.model.bare

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def known(self) -> KnownAnswers:
        """The known answers of all splits."""
        return self.kb.known()

    def evaluate(self, split: str = "test", **options: Any) -> Evaluation:
        """Rank the answers of a split; options as for :func:`getd.evaluation.evaluate.evaluate`."""
        memory = None if self.model.memory_weights is None else self.memory_choice()
        return evaluate(
            self.model, self.kb, split, epoch=self.epoch_choice(), memory=memory, **options
        )

    def epoch_choice(self) -> Choice:
        """By which facts the epoch was chosen that the weights are of."""
        if "valid" not in self.kb.splits:
            return Choice(None)
        sample = self.folder.read_config().get("training", {}).get("validation_sample")
        return self._choice("environment.json", "validation_filter", sample)

    def memory_choice(self) -> Choice:
        """By which facts the weights of the memory were fitted."""
        return self._choice(
            "memory.json", "filter", self.folder.read_json("memory.json").get("sample")
        )

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
        with owned(self.path):
            chosen = fit_weights(self.bare_model, memory, self.kb, sample)
            model = WithMemory(self.bare_model, memory, chosen)
            mrr = validation_mrr(
                model, self.kb.split("valid"), known_for_choosing(self.kb), sample=sample
            )
            weights = {name: values.model_dump() for name, values in chosen.items()}
            remembered = {
                "weights": weights,
                "valid_mrr": mrr,
                "sample": sample,
                "filter": filter_splits(self.kb, "valid"),
                "fitted_to": weights_fingerprint(self.bare_model.state_dict()),
            }
            calibration, calibrated = self._calibrated(model, sample)

            self.folder.write_json_files(
                {"memory.json": remembered, "calibration.json": calibrated}
            )
            self.model, self.calibration, self.notices = model, calibration, ()
            self._draw_reliability()
        return mrr

    def calibrate(self, sample: int | None = None) -> Calibration:
        """Fit on validation what turns scores into probabilities, and keep it in the run.

        ``sample``: fit on so many facts of validation at most, drawn at random.
        """
        with owned(self.path):
            calibration, calibrated = self._calibrated(self.model, sample)
            self.folder.write_json("calibration.json", calibrated)
            self.calibration, self.notices = calibration, ()
            self._draw_reliability()
        return calibration

    def _calibrated(
        self, model: ScoringModel, sample: int | None
    ) -> tuple[Calibration, dict[str, Any]]:
        """The calibration of a model, and the file that keeps it."""
        calibration = calibrate(model, self.kb, sample)
        facts, known = calibration_facts(model, self.kb, sample), known_for_choosing(self.kb)
        before, after = reliability(model, facts, known, [Calibration(), calibration])
        measured = {"before": before.as_dict(), "after": after.as_dict(), "sample": sample}
        return calibration, {
            **calibration.model_dump(),
            "valid": measured,
            "fitted_to": model_fingerprint(model),
        }

    def _draw_reliability(self) -> None:
        if find_spec("matplotlib"):
            from getd.plots.reliability import draw

            draw(self.folder)

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
    def roles(self) -> SlotFit:
        """The roles of all entities."""
        return SlotFit(self.kb)

    @cached_property
    def reasons(self) -> Explainer:
        """What finds the reasons of answers."""
        return Explainer(self.bare_model, self.kb)

    def predict(
        self, relation: str, entities: Names, top: int = 10, include_known: bool = False
    ) -> list[Answer]:
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
            next(answered)
            if len(question.open) < 2
            else answer_jointly(answerer, question, top, include_known)
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
    run = open_bare_run(Path(path))
    folder, kb, model, notices = run.folder, run.kb, run.model, []
    weights = folder.read_fingerprint() or weights_fingerprint(model.state_dict())

    if memory and folder.has_memory():
        chosen = read_memory(folder, weights)
        if chosen is None:
            notices.append(_other_model(folder, "memory.json", "remember"))
        else:
            model = WithMemory(
                model, Memory.from_facts(kb.split("train"), kb.n_entities), chosen
            ).eval()

    calibration = None
    if folder.is_calibrated():
        calibration = read_calibration(folder, model_fingerprint(model, weights))
        if calibration is None and (memory or not folder.has_memory()):
            notices.append(_other_model(folder, "calibration.json", "calibrate"))
    return Run(folder, kb, model, calibration, notices)


def open_bare_run(path: Path) -> Run:
    """The run without what was fitted to its model: no memory, no calibration."""
    folder = RunFolder(path)
    kb = folder.read_knowledge_base()
    return Run(folder, kb, read_model(folder, kb))


def _other_model(folder: RunFolder, name: str, command: str) -> str:
    return f"{folder.path / name} was fitted to another model and is not used; getd {command} {folder.path} fits it"

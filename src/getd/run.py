"""A trained run and its verbs: evaluate, predict, explain, rate, complete, extend, export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from getd.calibration.calibrate import Calibration, CalibrationFile
from getd.choices import ExportFormat, Precision, ReadFormat
from getd.errors import RunError
from getd.evaluation.precision import settle_precision
from getd.evaluation.report import Evaluation
from getd.facts.facts import count
from getd.facts.parse import Names, find_relation, parse_fact
from getd.memory.weights import MemoryWeights
from getd.models.base import ScoringModel
from getd.prediction.answer import TABLE_STYLE, Answer, Answers, Progress, check_top
from getd.prediction.complete import CompletionRequest, complete
from getd.prediction.explain import Explanation
from getd.prediction.export import export
from getd.prediction.predictor import Predictor
from getd.prediction.question import (
    FactSource,
    Question,
    parse_question,
    positions_of,
    read_facts,
    read_new_facts,
    read_questions,
)
from getd.prediction.rate import Rating, suspicious
from getd.runs.fitted import recalibrate, remember
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.training.new_entities import extend
from getd.visible import visible


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class MemoryFit:
    """What a memory gains on validation, and its weights."""

    mrr_without: float
    mrr: float
    weights: Mapping[str, MemoryWeights]  # by arity and position: "4-0"


class Run:
    """A trained run. ``getd.open_run(path)`` opens one, ``getd.train(...)`` returns one."""

    def __init__(self, opened: OpenedRun) -> None:
        self.opened = opened
        self.path = opened.path
        self.folder = opened.folder  # its files
        self.kb = opened.kb  # the knowledge base it was trained on
        self.predictor = Predictor(opened)

    @classmethod
    def open(cls, path: str | Path, memory: bool = True) -> Run:
        """Open the folder that training left; ``memory=False`` leaves its memory out."""
        return cls(open_run(path, memory))

    def __repr__(self) -> str:
        return f"Run({', '.join(f'{name}={value}' for name, value in self._summary().items())})"

    def _repr_html_(self) -> str:
        with pl.Config(**TABLE_STYLE):
            return pl.DataFrame(self._summary())._repr_html_()

    def _summary(self) -> dict[str, str]:
        """Describe the run in a few words; the MRR is that of its report on test."""
        summary = {
            "path": visible(str(self.path)),
            "data": visible(self.kb.name),
            "model": visible(self.folder.read_config().model_name),
            "facts": f"{sum(map(count, self.kb.splits.values())):,}",
        }
        with suppress(RunError):  # there may be no report, or a broken one
            summary["mrr"] = f"{self.folder.read_report().metrics.mrr:.3f}"
        return summary

    @property
    def model(self) -> ScoringModel:
        """The trained model, with its memory if it has one."""
        return self.opened.model

    @property
    def calibration(self) -> Calibration:
        """What turns scores into probabilities."""
        return self.opened.calibration

    @property
    def notices(self) -> Sequence[str]:
        """Messages about the run for the user."""
        return self.opened.notices

    def evaluate(self, split: str = "test", **options: Any) -> Evaluation:
        """Rank the answers of a split; options as for :func:`getd.evaluate`."""
        return self.opened.evaluate(split, **options)

    def predict(
        self, relation: str, entities: Names, top: int = 10, include_known: bool = False
    ) -> Answers:
        """Answer one question: ``"?"`` stands for up to three entities, or for the relation.

        ``entities`` are names in order, or a mapping of roles to names. Known answers are left out
        unless ``include_known``.
        """
        return self.answer([self.question(relation, entities)], top, include_known)[0]

    def question(self, relation: str, entities: Names) -> Question:
        """Parse a question once, to ask it more than once or together with others."""
        return parse_question(self.kb, relation, entities)

    def read_questions(self, source: FactSource, form: ReadFormat | None = None) -> list[Question]:
        """Read questions from a file, a data frame, or tuples; ``"?"`` marks what to predict."""
        return read_questions(source, self.kb, form)

    def answer(
        self, questions: Sequence[Question], top: int = 10, include_known: bool = False
    ) -> list[Answers]:
        """Answer many questions at once; the result has one list of answers per question."""
        check_top(top)
        answered = self.predictor.answer(questions, top, include_known)
        return [Answers(answers) for answers in answered]

    def explain_answer(self, question: Question, answer: Answer, top: int = 3) -> list[Explanation]:
        """Return the training facts that support each entity of an answer most."""
        check_top(top)
        return self.predictor.explain(question, answer, top)

    def explain(
        self,
        relation: str,
        entities: Names,
        positions: Iterable[int | str] | None = None,
        top: int = 3,
    ) -> list[Explanation]:
        """Return the training facts that support entities of a fact most.

        ``positions`` are indexes or roles of the entities to explain; None: all of them.
        """
        check_top(top)
        fact = parse_fact(self.kb, relation, entities)
        columns = positions_of(self.kb, fact, positions)
        return self.predictor.explain_fact(fact, columns, top)

    def rate(self, facts: FactSource, form: ReadFormat | None = None) -> list[Rating]:
        """Rate facts: how plausible they are, how likely true, and the rank of each entity.

        ``facts`` is a file, a data frame, or an iterable of ``(relation, entity, …)``.
        """
        order, blocks = read_facts(facts, self.kb, form)
        ratings = [rating for block in blocks.values() for rating in self.predictor.rate(block)]
        return [ratings[index] for index in order]

    def suspicious(self, top: int = 20, progress: Progress = no_progress) -> list[Rating]:
        """Return the known facts that look most like mistakes, the worst first."""
        check_top(top)
        return suspicious(self.predictor.answerer, top, progress)

    def complete(
        self,
        relation: str,
        out: str | Path,
        top: int = 100,
        min_confidence: float = 0.5,
        overwrite: bool = False,
        progress: Progress = no_progress,
        precision: Precision = "fp32",
    ) -> int:
        """Write the most probable missing facts of a relation to a file; returns their number.

        ``precision`` is that of the scores; ``auto`` is bf16 where there are many entities and the
        machine is faster with it.
        """
        check_top(top)
        number = find_relation(self.kb, relation)
        settled = settle_precision(precision, self.model)
        request = CompletionRequest(self.opened.fingerprint(), number, top, min_confidence, settled)
        return complete(self.predictor.answerer, request, Path(out), progress, overwrite)

    def extend(
        self,
        facts: FactSource,
        out: str | Path,
        progress: Progress = no_progress,
        form: ReadFormat | None = None,
    ) -> Run:
        """Write a run that knows more facts and their new entities, without training again."""
        named = read_new_facts(facts, self.kb, form)
        return Run(extend(self.opened, named, Path(out), progress))

    def export(
        self,
        out: str | Path,
        to: ExportFormat = "parquet",
        overwrite: bool = False,
        progress: Progress = no_progress,
    ) -> list[Path]:
        """Write the vectors as tables (parquet, npz) or the scores as a graph (onnx)."""
        return export(self.opened, Path(out), to, overwrite, progress)

    def calibrate(self, sample: int | None = None) -> CalibrationFile:
        """Fit probabilities on validation and store them in the run."""
        calibration = recalibrate(self.opened, sample)
        draw_reliability(self.folder)
        return calibration

    def remember(self, sample: int | None = None) -> MemoryFit:
        """Fit a memory of the training facts on validation and store it in the run."""
        bare = replace(self.opened, model=self.model.bare)
        before = bare.evaluate("valid", sample=sample, by=(), baselines=False)

        stored = remember(self.opened, sample)
        draw_reliability(self.folder)
        return MemoryFit(before.mrr, stored.valid_mrr or 0.0, stored.weights)


def draw_reliability(folder: RunFolder) -> None:
    """Draw ``calibration.svg`` in a calibrated run folder, if matplotlib is installed."""
    if folder.is_calibrated() and find_spec("matplotlib"):
        from getd.plots import run_pictures

        run_pictures.draw_reliability(folder)

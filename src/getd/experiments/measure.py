"""From a row to a result: train, or combine what was trained."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from getd.datasets.load import load
from getd.errors import ConfigError, RunError
from getd.evaluation.evaluate import evaluate
from getd.evaluation.protocol import Choice, Protocol, Provenance, Splits, filter_splits, left_out
from getd.experiments.result import (
    Measurement,
    Result,
    StudyMeasurement,
    describe_training,
    measurement,
    read_results,
)
from getd.experiments.result_index import ResultIndex
from getd.experiments.rows import MEMBERS, Point, Row, find_row
from getd.experiments.tables import measure_table
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble, Weights, combine_members
from getd.models.registry import COMBINED
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.training.callbacks import Callbacks
from getd.training.start import train
from getd.workflows.member_weights import fit_members

CURVES = {  # keys of a result by those of a history in which test stood in for validation
    "epoch": "epoch",
    "loss": "train_loss",
    "valid_loss": "test_loss",
    "valid_mrr": "test_mrr",
}
Progress = Callable[[str], AbstractContextManager[Callbacks]]  # by the name of a training


@dataclass(frozen=True)
class Measurer:
    """Measures rows: where results, pictures and their page go, and where runs are kept."""

    results: Path
    runs: Path
    progress: Progress  # shows a training, and may stop it

    def measure(self, row: Row, point: Point) -> Result:
        if row.kind == "table":
            return measure_table(row.name, ResultIndex(read_results(self.results)))
        if row.kind in ("combined", "derived"):
            return self._measure_derived(row, point)
        if row.kind == "study":
            return self._measure_study(row, point)

        kb = load(row.data)
        if not row.info.curves:
            extra = {"published": row.published} if row.published else {}
            return describe_training(self._train(point, kb), **extra)

        # Test stands in for validation: it is measured after each epoch, and chooses the weights.
        run = self._train(point, with_test_as_valid(kb))
        history = run.folder.read_history()
        curves = {name: [getattr(line, key) for line in history] for key, name in CURVES.items()}
        result = describe_training(run, curves=curves)
        protocol = result.protocol.with_epoch_chosen_on("test")
        return result.model_copy(update={"protocol": protocol})

    def run_folder(self, point: Point) -> RunFolder:
        return RunFolder(self.runs / point.name)

    def _train(self, point: Point, kb: KnowledgeBase, **training: Any) -> OpenedRun:
        """Return the finished run of a point; train or resume it where it is not finished."""
        folder = self.run_folder(point)
        path = folder.path
        if folder.exists() and folder.is_finished() and (path / "report.json").exists():
            return open_run(path)
        with self.progress(point.name) as callbacks:
            config = _config(point, **training)
            return train(kb, config, path, resume=folder.exists(), callbacks=callbacks)

    def _measure_derived(self, row: Row, point: Point) -> Measurement:
        """Evaluate runs of the base rows, alone or as one model, with what the row adds."""
        start = perf_counter()
        points = _members(row, point)
        whole = load(row.data)
        runs = [self._train(each, whole) for each in points]
        extra: dict[str, Any] = {"members": tuple(each.seed for each in points)}
        on_validation = Choice("valid", filter_splits(whole, "valid"))

        # Everything is fitted on validation with models that have not seen it.
        models = [run.model.bare for run in runs]
        weights = None
        if row.members:
            extra["rows"] = row.members
            learn_relations = [run.folder.read_config().learns_relations for run in runs]
            weights = fit_members(models, whole, learn_relations).weights
        memory_weights = None
        if "memory" in row.added:
            memory = Memory.from_facts(whole.split("train"), whole.n_entities)
            memory_weights = fit_weights(_as_one(models, weights), memory, whole)
            extra["memory"] = {name: fit.model_dump() for name, fit in memory_weights.items()}

        kb = whole
        trained_on: Splits = ("train",)
        if "valid" in row.added:
            kb = valid_in_train(whole)
            trained_on = ("train", "valid")
            pairs = zip(points, runs, strict=True)
            models = [self._train_on_valid(each, run, kb).model.bare for each, run in pairs]
        model = _as_one(models, weights)
        if memory_weights is not None:
            memory = Memory.from_facts(kb.split("train"), kb.n_entities)
            model = WithMemory(model, memory, memory_weights)

        provenance = Provenance(
            trained_on,
            runs[0].epoch_choice(),
            memory=on_validation if memory_weights is not None else None,
            members=on_validation if weights is not None else None,
        )
        evaluation = evaluate(model, whole, provenance=provenance)
        extra["seconds"] = round(perf_counter() - start, 1)
        result = measurement(runs[0].folder.read_config(), evaluation, **extra)
        return result.model_copy(update={"model": COMBINED}) if row.members else result

    def _train_on_valid(self, point: Point, run: OpenedRun, merged: KnowledgeBase) -> OpenedRun:
        """Train a run's settings on train and valid, for as many epochs as were best on valid."""
        epochs = run.folder.read_report().best_epoch
        if epochs is None:
            raise RunError(f"{run.path} was not validated: how long to train is not known")
        again = Point(f"{point.row}+valid", point.seed, point.config)
        return self._train(again, merged, epochs=epochs, patience=0)

    def _measure_study(self, row: Row, point: Point) -> StudyMeasurement:
        try:
            from getd.tuning.study import TuningCallbacks
            from getd.tuning.tune import tune
        except ImportError:
            raise ConfigError("tuning needs Optuna: pip install 'getd[tune]'") from None

        path = self.run_folder(point).path
        with self.progress(point.name) as callbacks:
            tuned = tune(
                load(row.data),
                study=path.with_suffix(".db"),
                trials=row.study.trials,
                space=row.study.space,
                config=_config(point),
                out=path,
                callbacks=TuningCallbacks(training=lambda number, epochs: callbacks),
                retraining=callbacks,
            )

        study = tuned.study
        trials = study.trials()
        filtered = left_out(["train", "valid"])
        return StudyMeasurement(
            data=row.data,
            model=point.config.model_name,
            metrics={"mrr": tuned.best.mrr or 0.0},  # on validation
            interval=None,
            protocol=Protocol(split="valid", trained_on=("train",), filter=filtered),
            config=study.get_note("config"),
            space=study.get_note("space"),
            trials=trials,
            best=tuned.best.number,
            importances=study.importances(),
            seconds=round(sum(trial.seconds or 0.0 for trial in trials), 1),
        )


def _config(point: Point, **training: Any) -> Config:
    """Return the config of a point with its seed, and other settings of ``[training]``."""
    return Config.parse(point.config.given, seed=point.seed, **training)


def _members(row: Row, point: Point) -> list[Point]:
    """Return the trainings that a derived row is made from."""
    if row.members:
        return [find_row(name).with_seeds([point.seed])[0] for name in row.members]
    seeds = MEMBERS if "ensemble" in row.added else (point.seed,)
    return find_row(row.base).with_seeds(seeds)


def _as_one(models: Sequence[ScoringModel], weights: Weights | None = None) -> ScoringModel:
    """Return one model, or the mean or weighted sum of several."""
    if weights is not None:
        return combine_members(models, weights).eval()
    return models[0] if len(models) == 1 else Ensemble(models)


def with_test_as_valid(kb: KnowledgeBase) -> KnowledgeBase:
    """Return the knowledge base with test as validation, for curves by which nothing is chosen."""
    test = kb.split("test")
    return kb.with_splits(train=kb.split("train"), valid=test, test=test)


def valid_in_train(kb: KnowledgeBase) -> KnowledgeBase:
    """Return the knowledge base with its validation facts among those of training."""
    train = join(kb.split("train"), kb.split("valid"))
    return kb.with_splits(train=train, test=kb.split("test"))

"""From a row to a result: train, or put together what was trained."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from getd.config import with_values
from getd.datasets.load import load
from getd.errors import ConfigError, RunError
from getd.evaluation.evaluate import evaluate
from getd.evaluation.protocol import Choice, Protocol, Provenance, filter_splits, left_out
from getd.experiments.result import (
    describe_evaluation,
    describe_training,
    read_results,
    result_path,
    write_result,
)
from getd.experiments.rows import MEMBERS, Point, Row, find_row, points
from getd.experiments.tables import measure_table
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.training.callbacks import Callbacks
from getd.training.start import train

CURVES = {
    "epoch": "epoch",
    "train_loss": "loss",
    "test_loss": "valid_loss",
    "test_mrr": "valid_mrr",
}
Watching = Callable[
    [Point], AbstractContextManager[Callbacks]
]  # how a training is shown, and stopped


@dataclass(frozen=True)
class Place:
    """Where results go, and where runs are kept."""

    into: Path
    runs: Path

    def folder(self, point: Point) -> RunFolder:
        return RunFolder(self.runs / point.name)


def reproduce(
    row: Row,
    seeds: list[int],
    place: Place,
    watching: Watching = lambda point: nullcontext(Callbacks()),
) -> list[Path]:
    """Measure what is not measured yet; what was interrupted goes on."""
    written = []
    for point in points(row, seeds):
        if row.name == "claims" or not result_path(place.into, point).exists():
            found = measure(row, point, place, watching)
            written.append(write_result(place.into, point, found))
    return written


def measure(row: Row, point: Point, place: Place, watching: Watching) -> dict[str, Any]:
    """One measurement."""
    if row.kind == "table":
        return measure_table(row.name, read_results(place.into))
    if row.kind == "derived":
        return _derived(row, point, place, watching)
    if row.kind == "study":
        return _study(row, point, place, watching)
    kb = load(point.config["data"])
    if not row.told.curves:
        return describe_training(_train(point, kb, place, watching)) | _published(row)
    run = _train(point, with_test_as_valid(kb), place, watching)
    lines = run.folder.read_history()
    curves = {name: [getattr(line, key) for line in lines] for name, key in CURVES.items()}
    found = describe_training(run)
    # Test stood in the place of validation.
    protocol = Protocol.model_validate(found["protocol"]).with_epoch_chosen_on("test")
    return found | {"protocol": protocol.as_dict(), "curves": curves}


def _published(row: Row) -> dict[str, Any]:
    return {"published": row.tables["published"]} if "published" in row.tables else {}


def _config(point: Point, **training: Any) -> dict[str, Any]:
    """The config of a point, its seed in it."""
    told = {"seed": point.seed, **training}
    return with_values(point.config, {f"training.{name}": value for name, value in told.items()})


def _train(
    point: Point, kb: KnowledgeBase, place: Place, watching: Watching, **training: Any
) -> OpenedRun:
    """A finished run, trained where it is not there; test is asked by its report."""
    folder = place.folder(point)
    if folder.exists() and folder.is_finished() and (folder.path / "report.json").exists():
        return open_run(folder.path)
    with watching(point) as callbacks:
        config = Config.parse(_config(point, **training))
        return train(kb, config, folder.path, resume=folder.exists(), callbacks=callbacks)


def _derived(row: Row, point: Point, place: Place, watching: Watching) -> dict[str, Any]:
    """Runs of the base row, as one model or each alone, with or without memory, perhaps trained on validation too."""
    base, start = find_row(row.base), time.perf_counter()
    kb = whole = load(base.tables["data"])
    seeds = MEMBERS if "ensemble" in row.added else (point.seed,)
    runs = [_train(Point(base.name, seed, base.tables), kb, place, watching) for seed in seeds]
    models = [run.model.bare for run in runs]
    weights = _memory_weights(models, kb) if "memory" in row.added else None
    trained_on: tuple[str, ...] = ("train",)
    if "valid" in row.added:
        models, kb, trained_on = (
            _train_on_valid(base, seeds, runs, kb, place, watching),
            valid_in_train(kb),
            ("train", "valid"),
        )
    model: ScoringModel = models[0] if len(models) == 1 else Ensemble(models)
    if weights is not None:
        model = WithMemory(model, Memory.from_facts(kb.split("train"), kb.n_entities), weights)
    fitted = Choice("valid", filter_splits(whole, "valid")) if weights is not None else None
    provenance = Provenance(trained_on, runs[0].epoch_choice(), fitted)
    evaluation = evaluate(model, whole, provenance=provenance)
    found = describe_evaluation(
        runs[0].folder.read_config(), evaluation, time.perf_counter() - start
    )
    extra: dict[str, Any] = {"members": list(seeds)}
    if weights is not None:
        extra["memory"] = {name: values.model_dump() for name, values in weights.items()}
    return found | extra


def _study(row: Row, point: Point, place: Place, watching: Watching) -> dict[str, Any]:
    """The trials of a study, and what they say."""
    try:
        from getd.tuning.study import TuningCallbacks
        from getd.tuning.tune import tune
    except ImportError:
        raise ConfigError("tuning needs Optuna: pip install 'getd[tune]'") from None
    folder, told = place.folder(point), row.study
    with watching(point) as callbacks:
        found = tune(
            load(point.config["data"]),
            study=folder.path.with_suffix(".db"),
            trials=told.trials,
            space=told.space,
            config=_config(point),
            out=folder.path,
            callbacks=TuningCallbacks(training=lambda number, epochs: callbacks),
            retraining=callbacks,
        )
    trials = found.study.trials()
    return {
        "data": point.config["data"],
        "model": point.config["model"]["name"],
        "protocol": Protocol(
            split="valid", trained_on=("train",), filter=left_out(["train", "valid"])
        ).as_dict(),
        "metrics": {"mrr": found.best.mrr},  # on validation
        "interval": None,
        "config": found.study.note("config"),
        "space": found.study.note("space"),
        "trials": [asdict(trial) for trial in trials],
        "best": found.best.number,
        "importances": found.study.importances(),
        "seconds": round(sum(trial.about.get("seconds", 0.0) for trial in trials), 1),
    }


def _memory_weights(models: list[ScoringModel], kb: KnowledgeBase) -> dict[str, MemoryWeights]:
    """Those that are best on validation, for the models that did not see it."""
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    return fit_weights(models[0] if len(models) == 1 else Ensemble(models), memory, kb)


def _train_on_valid(
    base: Row,
    seeds: tuple[int, ...],
    runs: list[OpenedRun],
    kb: KnowledgeBase,
    place: Place,
    watching: Watching,
) -> list[ScoringModel]:
    """The same settings on train and valid together, for as many epochs as were best on valid."""
    merged, models = valid_in_train(kb), []
    for seed, run in zip(seeds, runs, strict=True):
        point = Point(f"{base.name}+valid", seed, base.tables)
        epochs = run.folder.read_report().best_epoch
        if epochs is None:
            raise RunError(f"{run.path} was not validated: how long to train is not known")
        models.append(_train(point, merged, place, watching, epochs=epochs, patience=0).model.bare)
    return models


def with_test_as_valid(kb: KnowledgeBase) -> KnowledgeBase:
    """The knowledge base with test in the place of validation, for curves by which nothing is chosen."""
    return kb.with_splits(train=kb.split("train"), valid=kb.split("test"), test=kb.split("test"))


def valid_in_train(kb: KnowledgeBase) -> KnowledgeBase:
    """The knowledge base with its validation facts among those of training, and no validation any more."""
    return kb.with_splits(train=join(kb.split("train"), kb.split("valid")), test=kb.split("test"))

"""From a knowledge base and a space to the best settings, a page that shows them, and a run trained with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from getd.errors import RunError, RunInUse
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.training.callbacks import Callbacks, Interrupted
from getd.training.start import train as train_model
from getd.tuning.space import read_space
from getd.tuning.study import Pruning, Study, TuningCallbacks, is_gone, worker
from getd.tuning.trial import Trial


@dataclass(frozen=True)
class StudyResult:
    """What a study found."""

    study: Study
    best: Trial
    run: OpenedRun | None  # None: another process is at it


def tune(
    kb: KnowledgeBase,
    model: str | None = None,
    study: str | Path = "study.db",
    *,
    trials: int = 50,
    space: str | Mapping[str, Any] = "paper",
    config: Mapping[str, Any] | None = None,
    storage: str | None = None,
    pruning: Pruning = "median",
    seed: int = 0,
    out: str | Path | None = None,
    callbacks: TuningCallbacks | None = None,
    retraining: Callbacks | None = None,
) -> StudyResult:
    """Search settings on validation, then train with the best ones; test is never read.

    Neither its questions nor its answers: trials and the training that follows rank validation with the known answers
    of train and valid left out, and the run is not evaluated on test.

    Parameters
    ----------
    model
        The name of the model; that of the config, or ``getd``, where it is not given.
    study
        The file of the study, ``FILE.db`` or ``FILE.journal``; with ``storage``, its name there. A study that is there
        goes on.
    trials
        How many are to be finished in all, by all processes that work on the study.
    space
        ``paper``, ``wide``, a TOML file or what would stand in it: what is searched.
    config
        Tables ``model`` and ``training``: what is not searched.
    storage
        The address of a database server, where several machines work on one study.
    out
        The run folder; ``runs/DATA-MODEL-tuned`` where it is not given.
    """
    tables = {**(config or {}), "data": (config or {}).get("data", kb.name)}
    parsed = Config.parse(tables, model)
    name = parsed.model_name
    searched = read_space(space, parsed)
    for split in ("train", "valid"):  # before a study is begun
        kb.require(split)
    label = str(study) if storage else f"{kb.name}-{name}"
    opened = Study(storage or str(study), label, kb.name, parsed, searched, pruning, seed)
    folder = RunFolder(Path(out) if out else Path("runs") / f"{kb.name}-{name}-tuned")
    _check_place(opened, folder)
    opened.run(kb, trials, callbacks)
    best = opened.best()
    if best is None:
        raise RunError(
            "every trial of this study was pruned or lost; try more trials, or pruning none"
        )
    return StudyResult(opened, best, _retrain(opened, best, kb, folder, retraining))


def _retrain(
    study: Study, best: Trial, kb: KnowledgeBase, folder: RunFolder, callbacks: Callbacks | None
) -> OpenedRun | None:
    """Train the best settings into the folder, unless that is done or another process is at it."""
    before = study.note("run")
    same = (
        before is not None and before["path"] == str(folder.path) and before["trial"] == best.number
    )
    if same and folder.exists() and folder.is_finished():
        return open_run(folder.path)
    if (
        same
        and before["worker"]["process"] != worker()["process"]
        and not is_gone(before["worker"])
    ):
        return None
    study.note("run", {"path": str(folder.path), "trial": best.number, "worker": worker()})
    config = study.config.with_values(best.values)
    try:
        return train_model(
            kb,
            config,
            folder.path,
            resume=same,
            overwrite=not same and folder.exists(),
            ask_test=False,
            callbacks=callbacks,
        )
    except RunInUse:  # another process was quicker
        return None
    except Interrupted:
        raise Interrupted("go on with the same command") from None


def _check_place(study: Study, folder: RunFolder) -> None:
    """A run that this study did not write stays."""
    before = study.note("run")
    if folder.path.exists() and not (before and before["path"] == str(folder.path)):
        raise RunError(
            f"{folder.path} is there and not of this study; choose another place with --out"
        )

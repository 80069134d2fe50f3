"""From a knowledge base and a space to the best settings and a run trained with them."""

from dataclasses import dataclass
from pathlib import Path

from getd.choices import Pruning
from getd.errors import RunError, RunInUse
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun, open_run
from getd.training.callbacks import Callbacks, Interrupted
from getd.training.start import train
from getd.tuning.space import Tables, read_space
from getd.tuning.study import Study, TuningCallbacks
from getd.tuning.trial import Trial, best_trial
from getd.tuning.worker import is_gone, worker


@dataclass(frozen=True)
class StudyResult:
    study: Study
    best: Trial
    run: OpenedRun | None  # None: another process is training it


def tune(
    kb: KnowledgeBase,
    model: str | None = None,
    study: str | Path = "study.db",
    *,
    trials: int = 50,
    space: str | Tables = "paper",
    config: Config | Tables | None = None,
    storage: str | None = None,
    pruning: Pruning = "median",
    seed: int = 0,
    out: str | Path | None = None,
    callbacks: TuningCallbacks | None = None,
    retraining: Callbacks | None = None,
) -> StudyResult:
    """Search settings on validation, then train with the best ones; test is never read.

    The options are those of :func:`getd.tune`; ``retraining`` are the callbacks of that training.
    """
    tables = config.given if isinstance(config, Config) else config or {}
    parsed = Config.parse({"data": kb.name, **tables}, model)
    searched = read_space(space, parsed)
    kb.require("train", "valid")  # fails before a study is begun

    name = f"{kb.name}-{parsed.model_name}"
    label = str(study) if storage else name
    opened = Study(storage or str(study), label, kb.name, parsed, searched, pruning, seed)
    path = Path(out or Path("runs", f"{name}-tuned"))
    before = opened.get_note("run") or {}
    if path.exists() and before.get("path") != str(path):
        raise RunError(f"{path} is there and not of this study; choose another place with --out")

    opened.run(kb, trials, callbacks)
    best = best_trial(opened.trials())
    if best is None:
        raise RunError(
            "every trial of this study was pruned or lost; try more trials, or pruning none"
        )
    return StudyResult(opened, best, _retrain(opened, best, kb, RunFolder(path), retraining))


def _retrain(
    study: Study, best: Trial, kb: KnowledgeBase, folder: RunFolder, callbacks: Callbacks | None
) -> OpenedRun | None:
    """Train the best settings into the folder; None if another process is doing that."""
    this_worker = worker()
    target = {"path": str(folder.path), "trial": best.number}
    before = study.get_note("run")
    is_same = before is not None and target.items() <= before.items()

    if is_same:
        if folder.exists() and folder.is_finished():
            return open_run(folder.path)
        is_ours = before["worker"]["process"] == this_worker["process"]
        if not is_ours and not is_gone(before["worker"]):
            return None
    study.set_note("run", {**target, "worker": this_worker})

    try:
        return train(
            kb,
            study.config.with_values(best.values),
            folder.path,
            resume=is_same,
            overwrite=not is_same and folder.exists(),
            ask_test=False,
            callbacks=callbacks,
        )
    except RunInUse:
        return None  # another process was quicker
    except Interrupted:
        raise Interrupted("resume with the same command") from None

"""One function per command: what ``import getd`` offers next to :class:`getd.Run`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from getd.errors import RunInUse
from getd.facts.knowledge_base import KnowledgeBase
from getd.run import Run, draw_reliability
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.training import start
from getd.training.callbacks import Callbacks

if TYPE_CHECKING:
    from getd.tuning.study import Study
    from getd.tuning.trial import Trial


def train(
    kb: KnowledgeBase,
    model: str | None = None,
    out: str | Path | None = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callbacks | None = None,
    ask_test: bool = True,
    **training: Any,
) -> Run:
    """Train a model on a knowledge base and leave a run folder.

    Parameters
    ----------
    model
        The name of the model; by default that of the config, or ``getd``.
    out
        The run folder; by default ``runs/DATA-MODEL``.
    config
        Tables ``model`` and ``training`` as in a TOML file, or a parsed :class:`getd.Config`.
    resume
        Resume the run in ``out``, bit for bit as if it had not stopped.
    overwrite
        Replace a run that is there.
    ask_test
        Evaluate the finished model on test, once, where there is a test split.
    training
        Settings of ``[training]``; they take precedence over the config.
    """
    if not isinstance(config, Config):
        config = Config.parse(config or {}, model, **training)
    elif model or training:
        config = Config.parse(config.given, model, **training)

    opened = start.train(
        kb,
        config,
        out,
        resume=resume,
        overwrite=overwrite,
        callbacks=callbacks,
        ask_test=ask_test,
    )
    draw_pictures(opened.folder)
    return Run(opened)


def draw_pictures(folder: RunFolder) -> None:
    """Draw learning curves and reliability in a run folder, if matplotlib is installed."""
    if find_spec("matplotlib") is None:
        return
    from getd.plots.learning_curves import draw

    draw_reliability(folder)
    with suppress(RunInUse):  # another process resumed the run already, and will draw them
        draw(folder)


def open_run(path: str | Path, memory: bool = True) -> Run:
    """Open the folder that training left; ``memory=False`` leaves its memory out."""
    return Run.open(path, memory)


@dataclass(frozen=True)
class Tuned:
    """The result of a study."""

    study: Study
    best: Trial
    run: Run | None  # trained with the best settings; None: another process is training it


def tune(kb: KnowledgeBase, model: str | None = None, **options: Any) -> Tuned:
    """Search settings on validation, then train with the best ones; test is never read.

    Options as for :func:`getd.tuning.tune.tune`.
    """
    from getd.tuning.tune import tune as search

    result = search(kb, model, **options)
    if result.run is None:
        return Tuned(result.study, result.best, None)
    draw_pictures(result.run.folder)
    return Tuned(result.study, result.best, Run(result.run))

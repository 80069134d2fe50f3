"""One function per command: what ``import getd`` offers, next to :class:`getd.Run`.

Libraries that take long to import are imported inside the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from getd.choices import Preset
from getd.config import read_toml
from getd.datasets.catalogue import DataSet, cache_folder, list_datasets
from getd.datasets.convert import convert as convert
from getd.datasets.load import load as load
from getd.datasets.load import to_knowledge_base
from getd.errors import ConfigError, RunInUse
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.environment import let_waiting_threads_sleep
from getd.profile import describe as profile
from getd.profile.describe import Report

if TYPE_CHECKING:
    from getd.experiments.reproduce import Reproduction, RowStatus
    from getd.run import Run
    from getd.runs.config import Config
    from getd.runs.folder import RunFolder
    from getd.training.callbacks import Callbacks
    from getd.tuning.study import Study
    from getd.tuning.trial import Trial
    from getd.workflows.competition import SearchCallbacks
    from getd.workflows.demo import Example


def describe(kb: KnowledgeBase | Any, *, baselines: bool = False) -> Report:
    """Report what a knowledge base holds; ``baselines`` are ranked on test, on request."""
    kb = to_knowledge_base(kb)
    report = profile.describe(kb)
    if not baselines:
        return report
    from getd.evaluation.evaluate import evaluate_baselines

    metrics = {name: result.as_dict() for name, result in evaluate_baselines(kb).items()}
    return replace(report, baselines=metrics)


@dataclass(frozen=True)
class Catalogue:
    """The data sets that :func:`load` knows by name."""

    datasets: Sequence[tuple[DataSet, str | None]]  # with its folder; None: not downloaded yet
    cache: Path  # where they are downloaded to


def datasets() -> Catalogue:
    return Catalogue(list_datasets(), cache_folder())


def models(kb: KnowledgeBase | None = None) -> list[dict[str, Any]]:
    """Return a record of each model; with a knowledge base, its parameters are counted for it."""
    from getd.models.registry import count_parameters, describe_models

    records = describe_models()
    if kb is not None:
        counts = count_parameters(kb.n_entities, kb.n_relations, kb.arities)
        for record in records:
            record["parameters"] = counts.get(record["name"], 0)
    return records


def train(
    kb: KnowledgeBase | Any | None,
    model: str | None = None,
    out: str | Path | None = None,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callbacks | None = None,
    ask_test: bool = True,
    preset: Preset | None = None,
    budget: float | None = None,
    search_callbacks: SearchCallbacks | None = None,
    **training: Any,
) -> Run:
    """Train a model on a knowledge base and write a run folder.

    The rules of :mod:`getd.training.defaults` choose the settings that are not given.

    Parameters
    ----------
    kb
        The knowledge base, or what one is made of: the path or the name of data, tuples, or data
        frames. None: the data of the config, or with ``resume`` that of the run.
    model
        The name of the model; by default that of the config, or ``encoder``.
    out
        The run folder; by default ``runs/DATA-MODEL``.
    config
        Tables ``model`` and ``training``, the path of a TOML file of them, or a parsed
        :class:`getd.Config`.
    resume
        Resume the run in ``out``, bit for bit as if it had not stopped.
    overwrite
        Replace an existing run.
    ask_test
        Evaluate the finished model on test, once, if there is a test split.
    preset
        ``paper``: apply no rule, and train GETD with plain defaults and the paper's loss.
    budget
        Minutes to spend on a search: several candidates compete on validation, and the best one,
        or a combination, becomes the run. Settings that are given hold for all candidates.
    search_callbacks
        The callbacks of the search.
    training
        Settings of ``[training]``; they take precedence over the config.
    """
    from getd.run import Run
    from getd.runs.config import Config
    from getd.runs.folder import RunFolder
    from getd.training import start
    from getd.training.defaults import default_model, fill_in_aloud
    from getd.workflows.search_state import WorkFolder, begun_run

    if isinstance(config, str | Path):
        config = read_toml(config)
    if not isinstance(config, Config):
        config = Config.parse(_with_preset(config or {}, preset), model, **training)
    elif model or training or preset:
        config = Config.parse(_with_preset(config.given, preset), model, **training)
    data = config.data if kb is None else kb
    if data is not None:
        kb = to_knowledge_base(data)
    elif resume and out:
        kb = begun_run(Path(out)).read_knowledge_base()
    else:
        raise ConfigError("expected a knowledge base, or a run to resume")

    folder = Path(out) if out else Path("runs") / f"{kb.name}-{default_model(config)}"
    if resume and budget is None and WorkFolder.of(folder).exists():
        raise ConfigError(f"{folder} is a search; add --budget MINUTES")
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "ask_test": ask_test}
    if budget is not None:
        from getd.workflows.budget import search

        opened = search(kb, config, folder, budget, callbacks=search_callbacks, **options)
    else:
        if not (resume and RunFolder(folder).exists()):
            config = fill_in_aloud(config, kb, callbacks)
        opened = start.train(kb, config, folder, callbacks=callbacks, **options)
    _draw_pictures(opened.folder)
    return Run(opened)


def _with_preset(tables: Mapping[str, Any], preset: Preset | None) -> Mapping[str, Any]:
    return tables if preset is None else {**tables, "preset": preset}


def _draw_pictures(folder: RunFolder) -> None:
    """Draw learning curves and reliability in a run folder, if matplotlib is installed."""
    if find_spec("matplotlib") is None:
        return
    from getd.plots.run_pictures import draw_curves
    from getd.run import draw_reliability

    draw_reliability(folder)
    with suppress(RunInUse):  # another process resumed the run already, and will draw them
        draw_curves(folder)


def combine(
    runs: Iterable[Run | str | Path],
    out: str | Path,
    *,
    memory: bool = True,
    sample: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Combine trained runs on the same data into one run, an ensemble of their models.

    Parameters
    ----------
    runs
        Two or more runs; a combined run counts as its members. Memories are left out.
    out
        The folder of the new run, which does not need the others.
    memory
        Fit a memory of the training facts on top, on validation.
    sample
        The number of validation facts of each arity to fit on, at most, drawn at random; by default
        the smallest ``validation_sample`` of the runs, or all. The weights of the runs are fitted
        on at most 1,000 facts of each arity.
    overwrite
        Replace an existing run.
    progress
        Called with the number of steps done, and of all steps.
    """
    from getd.run import Run, draw_reliability
    from getd.workflows import combine as workflow

    paths = [run.path if isinstance(run, Run) else Path(run) for run in runs]
    opened = workflow.combine(
        paths,
        Path(out),
        memory=memory,
        sample=sample,
        overwrite=overwrite,
        progress=progress or workflow.no_progress,
    )
    draw_reliability(opened.folder)
    return Run(opened)


def open_run(path: str | Path, memory: bool = True) -> Run:
    """Open a run folder; ``memory=False`` leaves its memory out."""
    from getd.run import Run

    return Run.open(path, memory)


@dataclass(frozen=True)
class Demo:
    """A run on the built-in data, and what it answers."""

    run: Run
    examples: Sequence[Example]


def demo(out: str | Path = "runs/demo", callbacks: Callbacks | None = None) -> Demo:
    """Train a small model on the built-in data set, and hide an entity of five test facts."""
    from getd.run import Run
    from getd.workflows.demo import answer_held_out, train_demo

    run = Run(train_demo(Path(out), callbacks))
    _draw_pictures(run.folder)
    return Demo(run, answer_held_out(run.predictor))


@dataclass(frozen=True)
class Tuned:
    """The result of a study."""

    study: Study
    best: Trial
    run: Run | None  # trained with the best settings; None: another process is training it
    page: Path | None  # shows all trials; None: matplotlib is not installed

    def as_dict(self) -> dict[str, Any]:
        from getd.tuning.trial import counts

        best = self.best
        return {
            "trials": counts(self.study.trials()),
            "best": {"trial": best.number, "valid_mrr": best.mrr, "settings": dict(best.values)},
            "importances": self.study.importances(),
            "run": str(self.run.path) if self.run else None,
            "page": str(self.page) if self.page else None,
        }


def tune(
    kb: KnowledgeBase | Any,
    model: str | None = None,
    study: str | Path = "study.db",
    *,
    on_trial: Callable[[Trial, Trial | None, int], None] | None = None,
    trial_callbacks: Callable[[int, int], Callbacks] | None = None,
    callbacks: Callbacks | None = None,
    **options: Any,
) -> Tuned:
    """Search settings on validation, then train with the best ones; test is never read.

    Parameters
    ----------
    model
        The name of the model; by default that of the config, or ``getd``.
    study
        The file of the study, ``FILE.db`` or ``FILE.journal``; an existing one is resumed.
    on_trial
        Called after each trial with it, the best one so far, and the number of finished ones.
    trial_callbacks
        Returns the callbacks of a trial, from its number and its epochs.
    callbacks
        The callbacks of the training with the best settings.
    options
        ``trials, space, config, storage, pruning, seed, out``: see :func:`getd.tuning.tune.tune`.
    """
    if find_spec("optuna") is None:
        raise ConfigError("tuning needs Optuna: pip install 'getd[tune]'")
    from getd.run import Run
    from getd.tuning.study import TuningCallbacks
    from getd.tuning.tune import tune as search

    given = {"on_trial": on_trial, "training": trial_callbacks}
    functions: Any = {name: function for name, function in given.items() if function}
    result = search(
        to_knowledge_base(kb),
        model,
        study,
        callbacks=TuningCallbacks(**functions),
        retraining=callbacks,
        **options,
    )

    page = None
    if find_spec("matplotlib"):
        from getd.tuning.study_page import write_page

        page = write_page(result.study, Path(study).with_suffix(".html"))
    run = None
    if result.run is not None:
        _draw_pictures(result.run.folder)
        run = Run(result.run)
    return Tuned(result.study, result.best, run, page)


def reproduce(rows: Iterable[str] = (), **options: Any) -> Reproduction:
    """Measure rows of the paper's tables and figures again, and write the page of results.

    Options as for :func:`getd.experiments.reproduce.reproduce`.
    """
    if not find_spec("matplotlib"):
        raise ConfigError("pictures of results need matplotlib: pip install 'getd[plots]'")
    from getd.experiments.reproduce import reproduce

    return reproduce(rows, **options)


def list_rows(into: str | Path = "experiments") -> list[RowStatus]:
    """List the rows of the paper's tables and figures, with the number of results of each."""
    from getd.experiments.reproduce import list_rows

    return list_rows(Path(into))


def serve(run: Run | str | Path, **options: Any) -> None:
    """Serve a run over HTTP until interrupted; options as for :func:`getd.serving.serve.serve`."""
    if any(find_spec(library) is None for library in ("fastapi", "uvicorn", "prometheus_client")):
        raise ConfigError("serving needs FastAPI and uvicorn: pip install 'getd[serve]'")
    let_waiting_threads_sleep()  # requests need the cores, too
    from getd.run import Run
    from getd.serving.serve import serve

    serve(run.opened if isinstance(run, Run) else Path(run), **options)

"""A study: trials of settings, each trained and judged on validation, shared by any number of processes.

The storage decides who works together: a SQLite file, a journal file or a database server. A process that dies loses
the trial it was at, which is tried again by whoever comes next.
"""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, SQLAlchemyError

from getd.errors import ConfigError, NonFiniteScores, ShapeError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.start import interrupts, trainer_of
from getd.tuning.space import Choices, Range, Space
from getd.tuning.trial import Trial

Pruning = Literal["median", "hyperband", "none"]
SIGN_OF_LIFE, LOST = (
    20.0,
    600.0,
)  # seconds between signs of life; without one for so long a trial elsewhere is lost
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class TuningCallbacks:
    """How a study talks to the outside."""

    on_trial: Callable[[Trial, Trial | None, int], None] = lambda trial, best, finished: None
    training: Callable[[int, int], Callbacks] = lambda number, epochs: Callbacks()


class Study:
    """Trials of one model on one knowledge base over one space."""

    def __init__(
        self,
        storage: str,
        name: str,
        data: str,
        config: Config,
        space: Space,
        pruning: Pruning,
        seed: int,
    ) -> None:
        tables = config.tables()
        self.config, self.space, self.epochs, self.seed = (
            config,
            space,
            tables["training"]["epochs"],
            seed,
        )
        told = {
            "data": data,
            "config": {section: tables[section] for section in ("model", "training")},
            "space": {key: dimension.model_dump() for key, dimension in space.items()},
        }
        settings = {
            f"{section}.{key}": value
            for section in told["config"]
            for key, value in tables[section].items()
        }
        self._first = {
            key: settings[key] for key, dimension in space.items() if dimension.holds(settings[key])
        }
        self._told = json.loads(json.dumps(told))  # as the storage gives it back
        self._study = _patiently(lambda: self._open(storage, name, pruning))

    def _open(self, storage: str, name: str, pruning: Pruning) -> optuna.Study:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(
            storage=_storage(storage),
            sampler=_SeededByTrial(self.seed, self._first),
            pruner=_pruner(pruning, self.epochs),
            study_name=name,
            direction="maximize",
            load_if_exists=True,
        )
        before = study.user_attrs
        for key, value in self._told.items():
            if key not in before:
                study.set_user_attr(key, value)
            elif before[key] != value:
                raise ConfigError(
                    f"the study {name} of {storage} was begun with another {key}; name another study"
                )
        return study

    def run(self, kb: KnowledgeBase, trials: int, callbacks: TuningCallbacks | None = None) -> None:
        """Try settings until so many trials have finished, together with whoever else works on this study.

        They see the knowledge base as if nobody had written a test split: it filters nothing either.
        """
        kb, callbacks = (
            kb.with_splits(train=kb.split("train"), valid=kb.split("valid")),
            callbacks or TuningCallbacks(),
        )
        while True:
            self._rescue()
            found = self._study.get_trials(deepcopy=False)
            finished = sum(trial.state in FINISHED for trial in found)
            running = sum(trial.state == TrialState.RUNNING for trial in found)
            if finished >= trials:
                return
            if finished + running >= trials:
                time.sleep(0.2)  # the last ones are under way elsewhere
                continue
            self._one(kb, trials, callbacks)

    def trials(self) -> list[Trial]:
        """All trials so far."""
        return [
            _plain(trial)
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state != TrialState.WAITING
        ]

    def best(self) -> Trial | None:
        """The trial with the highest validation MRR that was trained to its end."""
        done = [trial for trial in self.trials() if trial.state == "complete"]
        return max(done, key=lambda trial: (trial.mrr or 0.0, -trial.number), default=None)

    def importances(self) -> dict[str, float]:
        """How much each setting matters for being among the best quarter; empty where trials are too few to tell."""
        done = [trial for trial in self.trials() if trial.state == "complete"]
        if len(done) < 5 or len({trial.mrr for trial in done}) < 2:
            return {}
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(
            target_quantile=0.25, evaluate_on_local=False
        )
        return dict(optuna.importance.get_param_importances(self._study, evaluator=evaluator))

    def note(self, key: str, value: Any = None) -> Any:
        """Keep something with the study, or give back what was kept."""
        if value is not None:
            self._study.set_user_attr(key, value)
        return self._study.user_attrs.get(key)

    def _one(self, kb: KnowledgeBase, trials: int, callbacks: TuningCallbacks) -> None:
        trial = self._study.ask(
            {name: _distribution(dimension) for name, dimension in self.space.items()}
        )
        trial.set_user_attr("worker", worker())
        wanted = [
            t.number
            for t in self._study.get_trials(deepcopy=False)
            if t.state in (*FINISHED, TrialState.RUNNING)
        ]
        if trial.number in wanted[trials:]:  # somebody else was quicker with the last one
            self._study.tell(trial, state=TrialState.FAIL)
            return
        start = time.perf_counter()
        config = self.config.with_values(trial.params)
        try:
            state = self._train(kb, config, trial, callbacks.training(trial.number, self.epochs))
            trial.set_user_attr("seconds", round(time.perf_counter() - start, 1))
            reported = self._study.get_trials(deepcopy=False)[trial.number].intermediate_values
            value = max(reported.values()) if state == TrialState.COMPLETE else None
            self._study.tell(trial, value, state)
        except KeyboardInterrupt:
            self._lose(trial.number)
            raise Interrupted("go on with the same command") from None
        except (
            optuna.exceptions.UpdateFinishedTrialError
        ):  # given up as lost by another process: it has them anew
            return
        found = self.trials()
        finished = sum(other.state in ("complete", "pruned") for other in found)
        callbacks.on_trial(
            next(other for other in found if other.number == trial.number), self.best(), finished
        )

    def _train(
        self,
        kb: KnowledgeBase,
        config: Config,
        trial: optuna.Trial,
        callbacks: Callbacks,
    ) -> TrialState:
        last_sign = time.monotonic()

        def on_batch(epoch: int, done: int, total: int) -> None:
            nonlocal last_sign
            if time.monotonic() - last_sign > SIGN_OF_LIFE:
                trial.set_user_attr("worker", worker())
                last_sign = time.monotonic()
            callbacks.on_batch(epoch, done, total)

        def on_epoch(epoch: Epoch) -> None:
            callbacks.on_epoch(epoch)
            if epoch.valid_mrr is not None:
                trial.report(epoch.valid_mrr, epoch.epoch)
                if epoch.epoch < self.epochs and trial.should_prune():
                    raise optuna.TrialPruned

        try:
            with trainer_of(kb, config) as trainer, interrupts() as interrupted:
                should_stop = lambda: interrupted.is_set() or callbacks.should_stop()  # noqa: E731
                trainer.train(callbacks=Callbacks(on_batch, on_epoch, should_stop))
        except optuna.TrialPruned:
            return TrialState.PRUNED
        except (NonFiniteScores, ShapeError, MemoryError) as error:  # settings that lead nowhere
            trial.set_user_attr("reason", str(error) or "out of memory")
            return TrialState.PRUNED
        trial.set_user_attr("best_epoch", trainer.progress.best_epoch)
        return TrialState.COMPLETE

    def _rescue(self) -> None:
        """Trials whose process is gone are lost, and their settings tried again."""
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if is_gone(
                trial.user_attrs.get("worker"),
                trial.datetime_start.timestamp() if trial.datetime_start else 0.0,
            ):
                self._lose(trial.number)

    def _lose(self, number: int) -> None:
        try:
            trial = self._study.tell(number, state=TrialState.FAIL)
        except (
            ValueError,
            optuna.exceptions.UpdateFinishedTrialError,
        ):  # another process was quicker
            return
        if trial.params:
            self._study.enqueue_trial(trial.params)


def worker() -> dict[str, Any]:
    """Who works, and a sign of life."""
    return {"host": socket.gethostname(), "process": os.getpid(), "seen": time.time()}


def is_gone(sign: Mapping[str, Any] | None, since: float = 0.0) -> bool:
    """Whether a worker has died: its process, where that can be seen; else it has shown no sign of life for long."""
    if sign is None:
        return time.time() - since > LOST
    if sign["host"] != socket.gethostname():
        return bool(time.time() - sign["seen"] > LOST)
    try:
        os.kill(sign["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(sign["process"])


def _is_zombie(process: int) -> bool:
    """Whether a process is dead, though whoever started it has not asked how it ended; where the system tells."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


class _SeededByTrial(optuna.samplers.BaseSampler):
    """TPE whose random numbers depend on the trial, not on who asks: processes differ, and going on changes nothing.

    The first trial gets the values that are given.
    """

    def __init__(self, seed: int, first: Mapping[str, Any]) -> None:
        self._seed, self._first, self._sampler = (
            seed,
            first,
            optuna.samplers.TPESampler(constant_liar=True),
        )

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._sampler = optuna.samplers.TPESampler(
            seed=self._seed + 7919 * trial.number, constant_liar=True
        )

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if trial.number == 0 and param_name in self._first:
            return self._first[param_name]
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)


def _storage(storage: str) -> optuna.storages.BaseStorage:
    """A database by its address, or a file: ``.db`` is SQLite, ``.journal`` a journal."""
    if "://" in storage:
        kind = storage.split(":")[0]
        try:
            return optuna.storages.RDBStorage(storage)
        except ImportError:
            raise ConfigError(f"no driver for {kind}: pip install 'getd[distributed]'") from None
        except (
            SQLAlchemyError,
            ValueError,
        ) as error:  # the address may hold a password: it is not repeated
            raise ConfigError(
                f"the {kind} storage cannot be opened: {str(error).splitlines()[0]}"
            ) from None
    path = Path(storage)
    if path.suffix not in (".db", ".journal"):
        raise ConfigError(f"expected a study FILE.db (SQLite) or FILE.journal, found {storage!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".journal":
        return optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    if (
        path.exists()
        and path.stat().st_size
        and not path.read_bytes()[:16].startswith(b"SQLite format 3")
    ):
        raise ConfigError(f"{path}: expected a SQLite file, found another")
    try:
        return optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 120}}
        )
    except DatabaseError as error:
        if isinstance(
            error, OperationalError | IntegrityError
        ):  # another process is making the tables
            raise
        raise ConfigError(f"{path}: expected a study, found a broken file ({error.orig})") from None


def _patiently(work: Callable[[], optuna.Study]) -> optuna.Study:
    """Processes that make the tables of one file at the same moment stand in each other's way, and try again."""
    for wait in (0.2, 0.5, 1.0, 2.0, 4.0):
        try:
            return work()
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError):
            time.sleep(wait * random.uniform(0.5, 1.5))
    try:
        return work()
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise ConfigError(f"the study cannot be opened: {str(error).splitlines()[0]}") from None


def _pruner(pruning: Pruning, epochs: int) -> optuna.pruners.BasePruner:
    if pruning == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=5)
    if pruning == "hyperband":
        return optuna.pruners.HyperbandPruner(min_resource=min(5, epochs), max_resource=epochs)
    return optuna.pruners.NopPruner()


def _distribution(dimension: Range | Choices) -> BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.choices)
    if dimension.is_whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(float(dimension.low), float(dimension.high), log=dimension.log)


def _plain(trial: FrozenTrial) -> Trial:
    names = {
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "pruned",
        TrialState.RUNNING: "running",
    }
    curve = dict(sorted(trial.intermediate_values.items()))
    about = {
        key: value
        for key, value in trial.user_attrs.items()
        if key in ("best_epoch", "seconds", "reason")
    }
    mrr = trial.value if trial.state == TrialState.COMPLETE else max(curve.values(), default=None)
    return Trial(
        trial.number, names.get(trial.state, "lost"), dict(trial.params), mrr, curve, about
    )

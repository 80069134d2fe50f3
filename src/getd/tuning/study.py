"""A study: trials of settings, each trained and judged on validation.

Any number of processes share a study by its storage: a SQLite file, a journal file or a database
server. A process that dies loses its trial; the next process tries the same settings again.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, perf_counter, sleep
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.logging import ERROR, set_verbosity
from optuna.trial import FrozenTrial, TrialState

from getd.choices import Pruning
from getd.errors import ConfigError, NonFiniteScores, ShapeError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.training.callbacks import Callbacks, Epoch, Interrupted
from getd.training.start import interrupts, trainer_of
from getd.tuning.search import SeededByTrial, distribution, pruner
from getd.tuning.space import Space
from getd.tuning.storage import open_storage, retry
from getd.tuning.trial import Trial, TrialStateName, best_trial
from getd.tuning.worker import SIGN_SECONDS, is_gone, worker

STATE_NAMES: dict[TrialState, TrialStateName] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.FAIL: "lost",
}
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
POLL_SECONDS = 0.2  # between two looks at trials that other processes are running
MIN_TRIALS = 5  # completed, before importances mean anything
ABOUT = ("best_epoch", "seconds", "reason")  # what is kept about a trial


@dataclass(frozen=True)
class TuningCallbacks:
    """Functions that a study calls."""

    # After each trial: the trial, the best so far, and how many have finished.
    on_trial: Callable[[Trial, Trial | None, int], None] = lambda trial, best, finished: None
    # Before each trial: its number and its epochs; returns the callbacks of its training.
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
        self.data = data
        self.config = config
        self.space = space
        self.epochs = config.training.epochs
        self.seed = seed
        self._study = retry(lambda: self._open(storage, name, pruning))

    def _open(self, storage: str, name: str, pruning: Pruning) -> optuna.Study:
        set_verbosity(ERROR)
        study = optuna.create_study(
            storage=open_storage(storage),
            sampler=SeededByTrial(self.seed, self.space.values_of(self.config)),
            pruner=pruner(pruning, self.epochs),
            study_name=name,
            direction="maximize",
            load_if_exists=True,
        )

        # A study that is there must be about the same data, settings and space.
        tables = self.config.tables()
        settings = {section: tables[section] for section in ("model", "training")}
        notes = {"data": self.data, "config": settings, "space": self.space.tables()}
        stored = study.user_attrs
        for key, value in json.loads(json.dumps(notes)).items():  # as the storage returns it
            if key not in stored:
                study.set_user_attr(key, value)
            elif stored[key] != value:
                raise ConfigError(
                    f"the study {name} of {storage} was begun with another {key}; "
                    "name another study"
                )
        return study

    def run(self, kb: KnowledgeBase, trials: int, callbacks: TuningCallbacks | None = None) -> None:
        """Run trials until ``trials`` have finished, together with all processes of this study.

        The knowledge base is used as if it had no test split: test filters nothing either.
        """
        kb = kb.with_splits(train=kb.split("train"), valid=kb.split("valid"))
        callbacks = callbacks or TuningCallbacks()

        while True:
            self._rescue()
            states = [trial.state for trial in self._study.get_trials(deepcopy=False)]
            finished = sum(state in FINISHED for state in states)
            running = states.count(TrialState.RUNNING)
            if finished >= trials:
                return
            if finished + running < trials:
                self._run_trial(kb, trials, callbacks)
            else:
                sleep(POLL_SECONDS)  # other processes run the last ones

    def trials(self) -> list[Trial]:
        stored = self._study.get_trials(deepcopy=False)
        return [_plain(trial) for trial in stored if trial.state != TrialState.WAITING]

    def importances(self) -> dict[str, float]:
        """Return how much a setting matters for being among the best quarter; empty: too early."""
        mrrs = [trial.mrr for trial in self.trials() if trial.state == "complete"]
        if len(mrrs) < MIN_TRIALS or len(set(mrrs)) < 2:
            return {}
        evaluator = PedAnovaImportanceEvaluator(target_quantile=0.25, evaluate_on_local=False)
        return get_param_importances(self._study, evaluator=evaluator)

    def get_note(self, key: str) -> Any:
        """Return what is stored with the study under this key; None: nothing."""
        return self._study.user_attrs.get(key)

    def set_note(self, key: str, value: Any) -> None:
        self._study.set_user_attr(key, value)

    def _run_trial(self, kb: KnowledgeBase, trials: int, callbacks: TuningCallbacks) -> None:
        space = {name: distribution(dimension) for name, dimension in self.space.items()}
        study = self._study
        trial = study.ask(space)
        number = trial.number
        trial.set_user_attr("worker", worker())

        # Another process may have started the last trial at the same moment.
        stored = study.get_trials(deepcopy=False)
        counted = [each.number for each in stored if each.state in (*FINISHED, TrialState.RUNNING)]
        if number in counted[trials:]:
            study.tell(trial, state=TrialState.FAIL)
            return

        start = perf_counter()
        config = self.config.with_values(trial.params)
        try:
            state = self._train(kb, config, trial, callbacks.training(number, self.epochs))
            trial.set_user_attr("seconds", round(perf_counter() - start, 1))
            curve = study.get_trials(deepcopy=False)[number].intermediate_values
            mrr = max(curve.values()) if state == TrialState.COMPLETE else None
            study.tell(trial, mrr, state)
        except KeyboardInterrupt:
            self._lose(number)
            raise Interrupted("resume with the same command") from None
        except UpdateFinishedTrialError:
            return  # another process took this one for dead, and tries its settings again

        done = self.trials()
        finished = sum(each.state in ("complete", "pruned") for each in done)
        this_trial = next(each for each in done if each.number == number)
        callbacks.on_trial(this_trial, best_trial(done), finished)

    def _train(
        self, kb: KnowledgeBase, config: Config, trial: optuna.Trial, callbacks: Callbacks
    ) -> TrialState:
        last_sign = monotonic()

        def on_batch(epoch: int, done: int, total: int) -> None:
            nonlocal last_sign
            if monotonic() - last_sign > SIGN_SECONDS:
                trial.set_user_attr("worker", worker())
                last_sign = monotonic()
            callbacks.on_batch(epoch, done, total)

        def on_epoch(epoch: Epoch) -> None:
            callbacks.on_epoch(epoch)
            if epoch.valid_mrr is not None:
                trial.report(epoch.valid_mrr, epoch.epoch)
                if epoch.epoch < self.epochs and trial.should_prune():
                    raise optuna.TrialPruned

        try:
            with trainer_of(kb, config) as trainer, interrupts() as interrupted:

                def should_stop() -> bool:
                    return interrupted.is_set() or callbacks.should_stop()

                trainer.train(callbacks=Callbacks(on_batch, on_epoch, should_stop))
        except optuna.TrialPruned:
            return TrialState.PRUNED
        except (NonFiniteScores, ShapeError, MemoryError) as error:  # settings that lead nowhere
            trial.set_user_attr("reason", str(error) or "out of memory")
            return TrialState.PRUNED

        trial.set_user_attr("best_epoch", trainer.progress.best_epoch)
        return TrialState.COMPLETE

    def _rescue(self) -> None:
        """Give up trials whose process has died; their settings are tried again."""
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            started = trial.datetime_start
            since = started.timestamp() if started else 0.0
            if is_gone(trial.user_attrs.get("worker"), since):
                self._lose(trial.number)

    def _lose(self, number: int) -> None:
        try:
            trial = self._study.tell(number, state=TrialState.FAIL)
        except (ValueError, UpdateFinishedTrialError):
            return  # another process was quicker
        if trial.params:
            self._study.enqueue_trial(trial.params)


def _plain(trial: FrozenTrial) -> Trial:
    curve = dict(sorted(trial.intermediate_values.items()))
    mrr = max(curve.values(), default=None)
    if trial.state == TrialState.COMPLETE:
        mrr = trial.value
    about = {key: value for key, value in trial.user_attrs.items() if key in ABOUT}
    return Trial(trial.number, STATE_NAMES[trial.state], dict(trial.params), mrr, curve, about)

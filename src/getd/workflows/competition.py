"""Candidates compete for the time of a search, round by round, on validation alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from getd.errors import GetdError, WriteError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.training import start
from getd.training.callbacks import Callbacks, Interrupted
from getd.visible import message_line
from getd.workflows.candidates import other_seeds
from getd.workflows.halving import (
    SHARES,
    Cost,
    better_half,
    epochs_to,
    fitting_epochs,
    seconds_of_field,
)
from getd.workflows.search_state import Candidate, SearchState, WorkFolder
from getd.workflows.timer import Clock, Timer

TRAINING_SHARE = 0.85  # of the budget; the rest is for choice, memory, calibration and test
MEASURED_SHARE = 0.2  # of what is left, to time first epochs
CLOSE_SHARE = 0.6  # of the time that is left, which the remaining epochs take
FEW_EPOCHS = 4  # that are left: their number does not change any more
LEAST_SHARE = 0.3  # of its epochs, with which a candidate is still worth training


@dataclass(frozen=True)
class Standings:
    """How far a search is, after a candidate trained for a while."""

    candidate: Candidate
    epochs_done: int
    valid_mrr: float | None  # its best so far
    leader: str
    leader_mrr: float | None
    seconds: float  # spent by the search


@dataclass(frozen=True)
class SearchCallbacks:
    """Functions that a search calls."""

    # Before a candidate trains up to an epoch: returns the callbacks of that training.
    on_training: Callable[[str, int], Callbacks] = lambda name, epoch: Callbacks()
    on_standings: Callable[[Standings], None] = lambda standings: None
    # When all trainings are over, before the winner is chosen: the names of those that finished.
    on_choice: Callable[[list[str]], None] = lambda names: None


class Search:
    """A search under way."""

    def __init__(
        self,
        kb: KnowledgeBase,
        work: WorkFolder,
        state: SearchState,
        seconds: float,
        callbacks: SearchCallbacks,
        clock: Clock,
    ) -> None:
        self.kb = kb
        self.work = work
        self.state = state
        self.callbacks = callbacks
        self.clock = clock

        # What was spent before an interruption counts.
        self.seconds = seconds
        self.started = clock() - state.spent
        self.training_ends = self.started + TRAINING_SHARE * seconds

    @property
    def spent(self) -> float:
        return self.clock() - self.started

    @property
    def default(self) -> Candidate:
        return self.state.candidates[0]

    def is_late(self) -> bool:
        """Whether the whole budget is spent."""
        return self.spent > self.seconds

    def finished(self) -> list[Candidate]:
        """Return the candidates that trained to their end; the default is the first."""
        return [each for each in self.state.candidates if each.standing == "finished"]

    def train(self) -> None:
        """Train the default to its end, then let the others compete for what is left."""
        if self.default.standing != "finished":
            self._train_default()
        while self._running() or self._begin_round():
            self._finish_round()
        self.callbacks.on_choice([each.name for each in self.finished()])

    def _train_default(self) -> None:
        """Train the default with as many of its epochs as fit."""
        default = self.default
        default.standing = "running"
        if not default.epoch_seconds:
            self._train_to(default, 1, self.training_ends)
        if default.standing == "running":
            self._train_to_end(default, self.training_ends)

    def _running(self) -> list[Candidate]:
        return [each for each in self.state.candidates if each.standing == "running"]

    def _waiting(self) -> list[Candidate]:
        return [each for each in self.state.candidates if each.standing == "waiting"]

    def _begin_round(self) -> bool:
        """Choose a field whose halving fits into the time that is left; False: none does."""
        if not self._waiting():
            self._add_seeds()

        chosen: list[Candidate] = []
        until = self.clock() + MEASURED_SHARE * self._training_seconds_left()
        for candidate in self.state.candidates:
            if candidate.standing == "waiting" and self.clock() < until:
                self._measure(candidate)
            if candidate.standing != "measured":
                continue
            if self._seconds_of([*chosen, candidate]) <= self._training_seconds_left():
                chosen.append(candidate)
            elif chosen or self._shorten(candidate):
                chosen = chosen or [candidate]
                break

        if not chosen and self._waiting() and self._training_seconds_left() > 0:
            return self._begin_round()

        for candidate in chosen:
            candidate.standing = "running"
        self.state.field = [each.name for each in chosen]
        self.state.rung = 0
        self._save()
        return bool(chosen)

    def _seconds_of(self, field: list[Candidate]) -> float:
        """Return how long a field takes at most; it is halved where all of it are validated."""
        costs = [self._cost(each) for each in field]
        halved = [share for share in SHARES if all(each.is_validated_by(share) for each in field)]
        return seconds_of_field(costs, halved)

    def _shorten(self, candidate: Candidate) -> bool:
        """Plan fewer epochs for a candidate, if these are not too few."""
        seconds = self._training_seconds_left() - len(SHARES) * candidate.startup
        if seconds <= 0:
            return False
        done = self.work.epochs_done(candidate.name)
        fitting = done + fitting_epochs(seconds, candidate.epoch_seconds)
        if fitting < LEAST_SHARE * candidate.epochs:
            return False
        candidate.epochs = min(fitting, candidate.epochs)
        return True

    def _add_seeds(self) -> None:
        """When every candidate had its turn, the best ones are tried with other seeds."""
        if any("-seed-" in each.name for each in self.state.candidates):
            return
        best = max(self.finished(), key=self._mrr)
        config = Config.parse(best.given)
        for name, other in other_seeds(best.name, config).items():
            added = Candidate.of(name, other)
            added.epochs = best.epochs
            self.state.candidates.append(added)
        self._save()

    def _measure(self, candidate: Candidate) -> None:
        """Train the first epoch, to know what the others will take."""
        if self._training_seconds_left() <= 0:
            return
        most = self._training_seconds_left() / max(LEAST_SHARE * candidate.epochs, 1)
        deadline = self.clock() + self.default.startup + most
        self._train_to(candidate, 1, deadline)
        if candidate.standing == "waiting" and candidate.epoch_seconds:
            candidate.standing = "measured"
        elif candidate.standing == "waiting":
            self._stop(candidate, "its first epoch takes too long")
        self._save()

    def _finish_round(self) -> None:
        """Train the field from rung to rung; the worse half stops at each."""
        if not self.state.field:  # a search of an earlier version, which did not note it
            self.state.field = [each.name for each in self._running()]

        for rung, share in enumerate(SHARES):
            if rung < self.state.rung:
                continue
            for candidate in self._running():
                if share == 1:
                    deadline = self.clock() + self._share_of_time_left(candidate)
                    self._train_to_end(candidate, deadline)
                else:
                    last = epochs_to(share, candidate.epochs)
                    self._train_to(candidate, last, self.training_ends)
                    if self._is_behind(candidate, last):
                        self._stop(candidate, "the time was up")
            if share < 1:
                self._halve(share)
            self.state.rung = rung + 1
            self._save()

    def _is_behind(self, candidate: Candidate, epoch: int) -> bool:
        is_running = candidate.standing == "running"
        return is_running and self.work.epochs_done(candidate.name) < epoch

    def _halve(self, share: float) -> None:
        """Stop the worse half of a field, by the MRR at the same share of their epochs."""
        mrrs = {}
        for candidate in self.state.candidates:
            is_left = candidate.standing in ("running", "finished")
            if is_left and candidate.name in self.state.field:
                epoch = epochs_to(share, candidate.epochs)
                mrr = self.work.best_mrr(candidate.name, epoch)
                if mrr is None:  # not validated yet: there is nothing to choose by
                    return
                mrrs[candidate.name] = mrr

        kept = better_half(mrrs)
        for candidate in self._running():
            if candidate.name not in kept:
                self._stop(candidate, f"in the worse half after {share:.0%} of its epochs")

    def _share_of_time_left(self, candidate: Candidate) -> float:
        """Return the share of the time that is left which a candidate may take."""
        costs = {each.name: sum(self._cost(each)) for each in self._running()}
        share = costs[candidate.name] / max(sum(costs.values()), 1e-9)
        return share * self._training_seconds_left()

    def _train_to_end(self, candidate: Candidate, deadline: float) -> None:
        """Train a candidate to its last epoch, with fewer of them if a deadline says so."""
        most = Config.parse(candidate.given).training.epochs
        while candidate.standing == "running" and self.clock() < deadline:
            done = self.work.epochs_done(candidate.name)
            if done >= candidate.epochs:  # the search was stopped after the last one
                break
            seconds = deadline - self.clock() - candidate.startup
            fitting = done + fitting_epochs(seconds, candidate.epoch_seconds)
            candidate.epochs = min(most, fitting)

            # Where it will be close, the plan is made again halfway.
            last = candidate.epochs
            needed = (last - done) * candidate.epoch_seconds
            if needed > CLOSE_SHARE * seconds and last - done > FEW_EPOCHS:
                last = (last + done) // 2
            self._train_to(candidate, last, deadline)

        # The time is up: the epoch under way is its last.
        if candidate.standing == "running":
            done = self.work.epochs_done(candidate.name)
            candidate.epochs = min(candidate.epochs, done + 1)
            self._train_to(candidate, candidate.epochs, math.inf)

    def _train_to(self, candidate: Candidate, epoch: int, deadline: float) -> None:
        """Train a candidate up to the end of an epoch, or up to a deadline."""
        timer = Timer(self.clock, epoch, deadline)
        shown = self.callbacks.on_training(candidate.name, epoch)
        begun = self.clock()
        try:
            start.train(
                self.kb,
                candidate.config(),
                self.work.path / candidate.name,
                resume=True,
                callbacks=timer.callbacks(shown),
                ask_test=False,
            )
            candidate.standing = "finished"
        except Interrupted as interrupt:
            if interrupt.by_signal or not timer.is_over:
                raise
        except WriteError:  # a full disk says nothing about the candidate
            raise
        except (GetdError, MemoryError, RuntimeError) as error:
            # Without memory, torch raises a plain RuntimeError.
            if candidate is self.default:
                raise
            candidate.standing = "failed"
            candidate.reason = _reason(error)
        finally:
            self._account(candidate, timer, begun)
        self.callbacks.on_standings(self._standings(candidate))

    def _account(self, candidate: Candidate, timer: Timer, begun: float) -> None:
        """Note the time that a training took."""
        candidate.seconds += self.clock() - begun
        if timer.started is not None:
            candidate.startup = timer.started - begun

        # A training that was killed may have left epochs that nothing was noted about.
        if timer.epoch_seconds is not None:
            candidate.epoch_seconds = timer.epoch_seconds
        elif not candidate.epoch_seconds:
            candidate.epoch_seconds = self.work.epoch_seconds(candidate.name)
        self._save()

    def _stop(self, candidate: Candidate, reason: str) -> None:
        candidate.standing = "stopped"
        candidate.reason = reason

    def _training_seconds_left(self) -> float:
        return self.training_ends - self.clock()

    def _cost(self, candidate: Candidate) -> Cost:
        return candidate.cost(self.work.epochs_done(candidate.name))

    def _mrr(self, candidate: Candidate, epoch: int | None = None) -> float:
        mrr = self.work.best_mrr(candidate.name, epoch)
        return -math.inf if mrr is None else mrr

    def _standings(self, candidate: Candidate) -> Standings:
        leader = max(self.state.candidates, key=self._mrr).name
        return Standings(
            candidate=candidate,
            epochs_done=self.work.epochs_done(candidate.name),
            valid_mrr=self.work.best_mrr(candidate.name),
            leader=leader,
            leader_mrr=self.work.best_mrr(leader),
            seconds=self.spent,
        )

    def _save(self) -> None:
        self.state.spent = self.spent
        self.work.write(self.state)


def _reason(error: Exception) -> str:
    """Say in one line why a training failed."""
    first_line, _, _ = str(error).partition("\n")
    name = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return message_line(first_line) or name

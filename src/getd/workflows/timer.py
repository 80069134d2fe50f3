"""A timer of one training of a search: it says when to stop, and what an epoch takes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from getd.training.callbacks import Callbacks, Epoch

TIMED_SHARE = 0.5  # of an epoch, from which on its time is known

Clock = Callable[[], float]  # in seconds


@dataclass
class Timer:
    """Stops a training at the end of an epoch or at a deadline, and times its epochs."""

    clock: Clock
    last_epoch: int
    deadline: float
    is_over: bool = False
    started: float | None = None  # the first epoch

    # Of the epochs that ended.
    _trained: float = field(default=0.0, init=False)  # epochs; only a share of a resumed one
    _training_seconds: float = field(default=0.0, init=False)
    _validated: int = field(default=0, init=False)
    _validation_seconds: float = field(default=0.0, init=False)

    # Of the epoch under way.
    _epoch: int = field(default=0, init=False)  # of the last batch
    _share: float = field(default=0.0, init=False)  # that is left to train when it begins
    _epoch_began: float = field(default=0.0, init=False)
    _batch_ended: float = field(default=0.0, init=False)

    @property
    def epoch_seconds(self) -> float | None:
        """What a whole epoch takes with its validation; None: too little of one was timed."""
        if self._trained < TIMED_SHARE:
            return None
        training = self._training_seconds / self._trained
        return training + self._validation_seconds / self._validated

    def callbacks(self, shown: Callbacks) -> Callbacks:
        """Return callbacks that also do what others do."""

        def on_start(epochs: int) -> None:
            self.started = self.clock()
            self._epoch_began = self.started
            self._batch_ended = self.started
            shown.on_start(epochs)

        def on_batch(epoch: int, done: int, total: int) -> None:
            if epoch != self._epoch:
                self._epoch = epoch
                self._share = 1 - (done - 1) / total
            shown.on_batch(epoch, done, total)
            self._batch_ended = self.clock()

        def on_epoch(epoch: Epoch) -> None:
            self._count_epoch(epoch.epoch)
            shown.on_epoch(epoch)

        def should_stop() -> bool:
            return self._should_stop() or shown.should_stop()

        return replace(
            shown,
            on_start=on_start,
            on_batch=on_batch,
            on_epoch=on_epoch,
            should_stop=should_stop,
        )

    def _count_epoch(self, epoch: int) -> None:
        """Add the time of an epoch that ends now."""
        now = self.clock()
        self._validated += 1
        self._validation_seconds += now - self._batch_ended

        # A training that stopped after the last batch of an epoch resumes with its validation.
        if epoch == self._epoch:
            self._trained += self._share
            self._training_seconds += self._batch_ended - self._epoch_began
        self._epoch_began = now
        self._batch_ended = now

    def _should_stop(self) -> bool:
        if self._epoch > self.last_epoch or self.clock() > self.deadline:
            self.is_over = True
        return self.is_over

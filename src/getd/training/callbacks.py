"""How a training talks to the outside: callbacks, the record of an epoch, the interrupt."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """One epoch of a training: a line of ``history.jsonl``."""

    epoch: int
    loss: float  # mean over facts
    seconds: float  # of training alone, without validation
    facts: int  # learnt from (questions in kvsall)
    learning_rate: float
    valid_mrr: float | None  # None: not measured in this epoch
    valid_loss: float | None = None  # None: not measured


@dataclass(frozen=True)
class Callbacks:
    """Functions that the training loop calls."""

    # After each batch: the epoch, the batches done in it, and all its batches.
    on_batch: Callable[[int, int, int], None] = lambda epoch, done, total: None
    on_epoch: Callable[[Epoch], None] = lambda epoch: None
    # After each batch: True stops the training, which writes a checkpoint first.
    should_stop: Callable[[], bool] = lambda: False
    # Before the first batch: the number of epochs that the settings ask for.
    on_start: Callable[[int], None] = lambda epochs: None
    # Before the training: what was chosen for the data, in one line.
    on_choice: Callable[[str], None] = lambda choice: None


class Interrupted(KeyboardInterrupt):
    """The training stopped because it was asked to; its checkpoint is written.

    ``by_signal``: the user stopped it, whether or not a callback did too.
    """

    def __init__(self, message: str = "", by_signal: bool = False) -> None:
        super().__init__(message)
        self.by_signal = by_signal

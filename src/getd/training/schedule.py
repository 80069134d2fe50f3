"""How the learning rate changes in the course of a training."""

from getd.runs.config import TrainSettings

MIN_SHARE = 0.02  # of the learning rate, at the end of a linear schedule


def learning_rate(settings: TrainSettings, epoch: int, batch: int, n_batches: int) -> float:
    """Return the learning rate of a step: a batch, from 0, of an epoch, from 1.

    >>> linear = TrainSettings(schedule="linear", epochs=2, learning_rate=1.0, warmup=1)
    >>> [learning_rate(linear, 1, 0, 2), learning_rate(linear, 1, 1, 2)]
    [0.5, 0.75]
    """
    steps_done = (epoch - 1) * n_batches + batch
    rate = settings.learning_rate
    if settings.schedule == "linear":
        rate *= max(MIN_SHARE, 1 - steps_done / (settings.epochs * n_batches))
    else:
        rate *= settings.decay ** (epoch - 1)
    return rate * min(1.0, (steps_done + 1) / (settings.warmup + 1))

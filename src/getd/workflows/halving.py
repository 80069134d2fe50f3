"""Successive halving: who goes on, and what a field of candidates may cost."""

from collections.abc import Container, Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

SHARES = (0.25, 0.5, 1.0)  # of its epochs, after which the worse half of a field stops


class Cost(NamedTuple):
    """The seconds that a candidate takes."""

    training: float  # all of its epochs
    startup: float  # each time it is resumed


def better_half(mrrs: Mapping[str, float]) -> list[str]:
    """Return the better half of a field by name; the first of equals, and one more if it is odd.

    >>> better_half({"a": 0.2, "b": 0.4, "c": 0.4})
    ['b', 'c']
    """
    ranked = sorted(mrrs, key=lambda name: -mrrs[name])
    kept = ranked[: ceil(len(ranked) / 2)]
    return [name for name in mrrs if name in kept]


def seconds_of_field(costs: Sequence[Cost], halved: Container[float] = SHARES) -> float:
    """Return how long halving takes at most, whoever goes on; ``halved`` are the shares where.

    >>> seconds_of_field([Cost(40, 0)]), seconds_of_field([Cost(40, 0), Cost(20, 0)])
    (40.0, 45.0)
    >>> seconds_of_field([Cost(40, 0), Cost(20, 0)], halved=[0.5])
    50.0
    """
    total = 0.0
    before = 0.0
    number = len(costs)
    for share in SHARES:
        seconds = [cost.training * (share - before) + cost.startup for cost in costs]
        seconds.sort(reverse=True)
        total += sum(seconds[:number])
        if share in halved:
            number = ceil(number / 2)
        before = share
    return total


def epochs_to(share: float, epochs: int) -> int:
    """Return the epoch at a share of all.

    >>> [epochs_to(share, 10) for share in SHARES]
    [3, 5, 10]
    """
    return ceil(share * epochs)


def fitting_epochs(seconds: float, epoch_seconds: float) -> int:
    """Return how many epochs fit into some seconds, at least one.

    >>> fitting_epochs(35.0, 10.0), fitting_epochs(-1.0, 10.0)
    (3, 1)
    """
    fitting = seconds / epoch_seconds if epoch_seconds else inf
    return int(min(max(fitting, 1), 10**6))

"""A deadline for everything that a block does, however deep.

Long work calls :func:`check_deadline` between its steps; the caller sets the deadline:

>>> with deadline(time.monotonic() - 1):
...     check_deadline()
Traceback (most recent call last):
getd.io.deadline.DeadlineExceeded: it took too long
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_over: ContextVar[Callable[[], bool]] = ContextVar("is_over", default=lambda: False)


class DeadlineExceeded(Exception):
    """Nobody waits for this work any more."""


@contextmanager
def deadline(moment: float, is_cancelled: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Stop the work of a block at a moment of ``time.monotonic()``, or once it is cancelled."""
    token = _is_over.set(lambda: time.monotonic() > moment or is_cancelled())
    try:
        yield
    finally:
        _is_over.reset(token)


def check_deadline() -> None:
    """Raise :class:`DeadlineExceeded` if the deadline has passed or the work is cancelled."""
    if _is_over.get()():
        raise DeadlineExceeded("it took too long")

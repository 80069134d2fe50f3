"""A moment by which work must be done, for all that is done under it.

Work that may take long asks :func:`check_deadline` between its steps; whoever waits for it sets the moment:

>>> with deadline(time.monotonic() - 1):
...     check_deadline()
Traceback (most recent call last):
getd.io.deadline.DeadlineExceeded: it took too long
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_over: ContextVar[Callable[[], bool]] = ContextVar("is_over", default=lambda: False)


class DeadlineExceeded(Exception):
    """Nobody waits for this work any more."""


@contextmanager
def deadline(moment: float, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """What is done within ends by a moment of ``time.monotonic()``, and before once it is ``given_up``."""
    token = _is_over.set(lambda: time.monotonic() > moment or given_up())
    try:
        yield
    finally:
        _is_over.reset(token)


def check_deadline() -> None:
    """Raise :class:`DeadlineExceeded` where the moment has passed, or nobody wants the work any more."""
    if _is_over.get()():
        raise DeadlineExceeded("it took too long")

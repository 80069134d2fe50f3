"""Questions of requests that come at once, answered together.

One thread answers. While it does, questions gather; when it is free it takes all that are there that ask alike, as one
batch. Nobody waits for others to come, so a lone request is as fast as without. Work that nobody waits for any more,
because it took too long, who asked has left or all is ending, is given up at its next step.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from getd.io.deadline import check_deadline, deadline

Q = TypeVar("Q")
A = TypeVar("A")
K = TypeVar("K")
R = TypeVar("R")


@dataclass
class _Waiting(Generic[Q, A, K]):
    kind: K
    questions: Sequence[Q]
    moment: float  # nobody waits for it after that
    answered: asyncio.Future[list[A]] = field(repr=False)


class Batcher(Generic[Q, A, K]):
    """Calls ``answer(kind, questions)`` in one thread, for several requests of one kind at a time."""

    def __init__(
        self,
        answer: Callable[[K, Sequence[Q]], list[A]],
        most: int,
        seconds: float,
        together: bool = True,
    ) -> None:
        self._answer, self._most, self._seconds, self._together = answer, most, seconds, together
        self._waiting: deque[_Waiting[Q, A, K]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="getd-model")
        self._task: asyncio.Task[None] | None = None
        self._closed = threading.Event()
        self.batches = self.questions = 0

    async def ask(self, kind: K, questions: Sequence[Q]) -> list[A]:
        """The answers of some questions, in their order."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Q, A, K] = _Waiting(kind, questions, self._moment(), loop.create_future())
        self._waiting.append(waiting)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        return await waiting.answered

    async def call(self, function: Callable[[], R]) -> R:
        """Something else that the thread should do, one thing at a time."""
        left = threading.Event()
        try:
            return await self._run(self._moment(), left.is_set, function)
        finally:
            left.set()

    async def _run(self, moment: float, given_up: Callable[[], bool], work: Callable[[], R]) -> R:
        """In the thread, until a moment, unless it is given up."""

        def wanted() -> R:
            with deadline(moment, lambda: given_up() or self._closed.is_set()):
                check_deadline()
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, wanted)

    def _moment(self) -> float:
        return time.monotonic() + self._seconds

    async def _work(self) -> None:
        while self._waiting:
            if batch := self._take():
                await self._answer_batch(batch)

    async def _answer_batch(self, batch: Sequence[_Waiting[Q, A, K]]) -> None:
        asked = [question for waiting in batch for question in waiting.questions]
        self.batches, self.questions = self.batches + 1, self.questions + len(asked)
        moment, work = (
            max(waiting.moment for waiting in batch),
            partial(self._answer, batch[0].kind, asked),
        )
        try:
            answers = await self._run(
                moment, lambda: all(waiting.answered.done() for waiting in batch), work
            )
        except Exception as error:
            if len(batch) > 1:  # one of them is to blame, not all
                for waiting in batch:
                    await self._answer_batch([waiting])
            elif not batch[0].answered.done():
                batch[0].answered.set_exception(error)
            return
        start = 0
        for waiting in batch:
            stop = start + len(waiting.questions)
            if not waiting.answered.done():  # it may have given up
                waiting.answered.set_result(answers[start:stop])
            start = stop

    def _take(self) -> list[_Waiting[Q, A, K]]:
        """The first request and those like it, as many as fit; requests that gave up are dropped."""
        batch, left, size = list[_Waiting[Q, A, K]](), deque[_Waiting[Q, A, K]](), 0
        while self._waiting and (self._together or not batch):
            waiting = self._waiting.popleft()
            if waiting.answered.done():
                continue
            fits = not batch or (
                waiting.kind == batch[0].kind and size + len(waiting.questions) <= self._most
            )
            (batch if fits else left).append(waiting)
            size += len(waiting.questions) if fits else 0
        self._waiting.extendleft(reversed(left))
        return batch

    def close(self) -> None:
        """End the thread at the next step of what it does."""
        self._closed.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

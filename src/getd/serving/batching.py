"""Questions of simultaneous requests, answered together.

One thread answers. Meanwhile questions gather; when the thread is free, it takes all of one kind as
one batch. Clients that ask again at once stay together: after a batch of several requests the
thread waits for as many, for a moment. A lone client never waits, so it is as fast as without
batching. Work that nobody waits for ends at its next step: it took too long, the client has left,
or the service is ending.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch

from getd.io.deadline import check_deadline, deadline
from getd.prediction.answer import Answer
from getd.prediction.question import Question

Kind = tuple[int, bool]  # the number of answers, and whether known ones are included
Answers = list[list[Answer]]  # of each question
R = TypeVar("R")
MAX_GATHERING = 0.02  # seconds


@dataclass
class _Request:
    kind: Kind
    questions: Sequence[Question]
    moment: float  # of time.monotonic(): nobody waits for it after that
    answered: asyncio.Future[Answers]  # done too if its sender has left


class Batcher:
    """Calls ``answer(kind, questions)`` in one thread, for several requests of one kind at once."""

    def __init__(
        self,
        answer: Callable[[Kind, Sequence[Question]], Answers],
        max_questions: int,
        timeout: float,
        threads: int | None = None,
    ) -> None:
        self._answer = answer
        self._max_questions = max_questions  # in a batch of several requests; 0: no such batch
        self._timeout = timeout  # seconds
        self._waiting: deque[_Request] = deque()
        threads = threads or torch.get_num_threads()  # of matrix products
        self._thread = ThreadPoolExecutor(1, "getd-model", torch.set_num_threads, (threads,))
        self._task: asyncio.Task[None] | None = None
        self._expected = 1  # requests, before the next batch begins
        self._are_waiting = asyncio.Event()
        self._closed = threading.Event()

    async def ask(self, kind: Kind, questions: Sequence[Question]) -> Answers:
        """Return the answers of questions, in their order."""
        loop = asyncio.get_running_loop()
        moment = time.monotonic() + self._timeout
        request = _Request(kind, questions, moment, loop.create_future())
        self._waiting.append(request)
        if len(self._waiting) >= self._expected:
            self._are_waiting.set()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        return await request.answered

    async def call(self, function: Callable[[], R]) -> R:
        """Call another function in the thread; it does one thing at a time."""
        has_left = threading.Event()
        moment = time.monotonic() + self._timeout
        try:
            return await self._run(moment, has_left.is_set, function)
        finally:
            has_left.set()

    def close(self) -> None:
        """End the thread at the next step of its work."""
        self._closed.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _run(
        self, moment: float, is_cancelled: Callable[[], bool], work: Callable[[], R]
    ) -> R:
        """Work in the thread until a moment, unless it is cancelled."""

        def work_in_time() -> R:
            with deadline(moment, lambda: is_cancelled() or self._closed.is_set()):
                check_deadline()
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, work_in_time)

    async def _work(self) -> None:
        while self._waiting:
            if batch := self._take_batch():
                start = time.monotonic()
                await self._answer_batch(batch)
                if len(batch) > 1:
                    await self._gather(len(batch), time.monotonic() - start)

    async def _gather(self, n_requests: int, seconds: float) -> None:
        """Wait for as many requests as were answered, but no longer than that took."""
        self._expected = n_requests
        if len(self._waiting) < n_requests:
            self._are_waiting.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._are_waiting.wait(), min(seconds, MAX_GATHERING))

    def _take_batch(self) -> list[_Request]:
        """Take the first request and those like it, as many as fit; drop those that gave up."""
        batch: list[_Request] = []
        others: list[_Request] = []
        size = 0
        while self._waiting:
            request = self._waiting.popleft()
            if request.answered.done():
                continue

            new_size = size + len(request.questions)
            if not batch or (request.kind == batch[0].kind and new_size <= self._max_questions):
                batch.append(request)
                size = new_size
            else:
                others.append(request)
        self._waiting.extendleft(reversed(others))
        return batch

    async def _answer_batch(self, batch: Sequence[_Request]) -> None:
        questions = [question for request in batch for question in request.questions]
        moment = max(request.moment for request in batch)
        work = partial(self._answer, batch[0].kind, questions)
        try:
            answers = await self._run(
                moment, lambda: all(request.answered.done() for request in batch), work
            )
        except Exception as error:
            if len(batch) > 1:  # one of them is to blame, not all
                for request in batch:
                    await self._answer_batch([request])
            elif not batch[0].answered.done():
                batch[0].answered.set_exception(error)
            return

        start = 0
        for request in batch:
            stop = start + len(request.questions)
            if not request.answered.done():  # it may have given up meanwhile
                request.answered.set_result(answers[start:stop])
            start = stop

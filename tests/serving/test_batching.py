"""Requests that come together are answered together; work that nobody waits for ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest
import torch

from getd.io.deadline import DeadlineExceeded, check_deadline
from getd.serving import batching
from getd.serving.batching import Batcher


def test_questions_that_come_while_others_are_answered_go_together() -> None:
    batches = []
    go = threading.Event()

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        go.wait(60)
        batches.append((kind, list(questions)))
        return [-question for question in questions]

    async def ask() -> list[list[int]]:
        batcher = Batcher(answer, max_questions=4, timeout=99)
        tasks = [asyncio.create_task(batcher.ask("a", [number])) for number in range(6)]
        tasks.append(asyncio.create_task(batcher.ask("b", [9])))
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(ask()) == [[0], [-1], [-2], [-3], [-4], [-5], [-9]]
    assert batches[0] == ("a", [0, 1, 2, 3])
    assert sorted(batches[1:]) == [("a", [4, 5]), ("b", [9])]


def test_a_failing_batch_fails_its_own_requests_alone() -> None:
    def answer(kind: int, questions: Sequence[int]) -> list[int]:
        return [kind // question for question in questions]

    async def ask() -> list[object]:
        batcher = Batcher(answer, max_questions=4, timeout=99)
        requests = [(2, 0), (2, 1), (2, 2), (3, 1)]
        replies = [batcher.ask(kind, [question]) for kind, question in requests]
        return await asyncio.gather(*replies, return_exceptions=True)

    first, *others = asyncio.run(ask())
    assert isinstance(first, ZeroDivisionError)
    assert others == [[2], [1], [3]]


def test_work_that_nobody_waits_for_ends() -> None:
    steps = []

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        for step in range(1000):
            check_deadline()
            steps.append(step)
            time.sleep(0.01)
        return list(questions)

    async def ask() -> list[object]:
        batcher = Batcher(answer, max_questions=4, timeout=0.1)
        return await asyncio.gather(
            batcher.ask("a", [0]), batcher.call(lambda: answer("b", [1])), return_exceptions=True
        )

    assert [type(error) for error in asyncio.run(ask())] == [DeadlineExceeded, DeadlineExceeded]
    assert len(steps) < 900


def test_requests_that_gave_up_are_not_answered() -> None:
    answered = []
    begun = threading.Event()
    go = threading.Event()

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        begun.set()
        go.wait(60)
        answered.extend(questions)
        return list(questions)

    async def ask() -> None:
        batcher = Batcher(answer, max_questions=1, timeout=99)
        tasks = [asyncio.create_task(batcher.ask("a", [number])) for number in range(4)]
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for task in tasks[1:]:
            task.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await tasks[0] == [0]

    asyncio.run(ask())
    assert answered == [0]


def test_clients_that_ask_again_at_once_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_GATHERING", 60.0)
    batches = []
    go = threading.Event()

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        go.wait(60)
        time.sleep(0.5)
        batches.append(sorted(questions))
        return list(questions)

    async def client(batcher: Batcher, number: int) -> None:
        for turn in range(3):
            await batcher.ask("a", [10 * turn + number])
            for _ in range(number):  # some are slower than others
                await asyncio.sleep(0)

    async def ask() -> None:
        batcher = Batcher(answer, max_questions=9, timeout=99)
        clients = [asyncio.create_task(client(batcher, number)) for number in range(4)]
        await asyncio.sleep(0.05)
        go.set()
        await asyncio.gather(*clients)

    asyncio.run(ask())
    assert batches == [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]


def test_one_that_asks_again_alone_is_answered_without_the_others() -> None:
    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        return [-question for question in questions]

    async def ask() -> list[list[int]]:
        batcher = Batcher(answer, max_questions=9, timeout=99)
        replies = await asyncio.gather(*(batcher.ask("a", [number]) for number in (1, 2, 3)))
        return [*replies, await batcher.ask("a", [4])]

    assert asyncio.run(ask()) == [[-1], [-2], [-3], [-4]]


def test_the_thread_of_the_model_multiplies_with_as_many_threads_as_it_is_given() -> None:
    async def ask() -> list[int]:
        batcher = Batcher(lambda kind, questions: [], max_questions=9, timeout=99, threads=1)
        return [await batcher.call(torch.get_num_threads), torch.get_num_threads()]

    before = torch.get_num_threads()
    assert asyncio.run(ask()) == [1, before]

"""The middleware refuses large, slow and foreign requests, and lets go of clients that left."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from getd.prediction.predictor import Predictor
from getd.runs.opened import OpenedRun

pytest.importorskip("fastapi", reason="getd[serve] is not installed")
from fastapi.testclient import TestClient

from getd.io.deadline import check_deadline
from getd.serving.app import create_app
from getd.serving.middleware import ServeSettings, _while_connected

QUESTION = {"relation": "transfer", "entities": ["Ada Hale", "?", "Oxbow United", "2016-17"]}


def test_large_and_slow_requests_are_refused(
    served: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(create_app(served, ServeSettings(max_body=100))) as client:
        large = client.post("/predict", json={"questions": [QUESTION] * 5})
        assert large.status_code == 413
        assert large.json()["detail"] == "expected a body of 100 bytes at most"
        chunked = client.post("/predict", content=iter([b"x" * 60, b"x" * 60]))
        assert chunked.status_code == 413
    with TestClient(create_app(served, ServeSettings(timeout=0.2))) as client:
        monkeypatch.setattr(Predictor, "answer", lambda *arguments: time.sleep(0.6))
        slow = client.post("/predict", json={"questions": [QUESTION]})
        assert (slow.status_code, slow.json()["detail"]) == (503, "it took longer than 0.2 seconds")


def test_the_work_of_a_client_that_left_ends(
    served: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    left = asyncio.Event()

    def answer(*arguments: object) -> list[object]:
        for step in range(1000):
            check_deadline()
            steps.append(step)
            time.sleep(0.01)
        return []

    monkeypatch.setattr(Predictor, "answer", answer)
    app = create_app(served, ServeSettings(timeout=99))
    body = json.dumps({"questions": [QUESTION]}).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/predict",
        "raw_path": b"/predict",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
    }
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, object]:
        for message in messages:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    async def ask() -> float:
        sent: list[object] = []

        async def send(message: object) -> None:
            sent.append(message)

        task = asyncio.create_task(app(scope, receive, send))  # type: ignore[arg-type]
        while not steps:
            await asyncio.sleep(0.01)
        left.set()
        await task
        assert not sent
        start = time.perf_counter()
        async with app.router.lifespan_context(app):
            pass  # it ends as soon as the work does
        return time.perf_counter() - start

    assert asyncio.run(ask()) < 8  # the work would take 10 seconds
    assert len(steps) < 900


def test_work_is_cancelled_when_its_client_leaves() -> None:
    async def scenario() -> bool:
        working = asyncio.get_running_loop().create_future()

        async def receive() -> dict[str, str]:
            return {"type": "http.disconnect"}

        await _while_connected(working, receive)
        await asyncio.sleep(0)
        return working.cancelled()

    assert asyncio.run(scenario())


def test_it_is_reached_by_its_own_names_alone(served: OpenedRun) -> None:
    settings = ServeSettings(hosts=("127.0.0.1", "[::1]"))
    with TestClient(create_app(served, settings)) as client:
        for host, status in (
            ("127.0.0.1:8000", 200),
            ("[::1]:8000", 200),
            ("[::1]", 200),
            ("evil.example", 400),
        ):
            assert client.get("/health", headers={"Host": host}).status_code == status

"""The service: it answers as the run does, refuses what it must, and never falls over."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import getd
from getd.facts.facts import Facts
from getd.run import Run

pytest.importorskip("fastapi", reason="getd[serve] is not installed")
from fastapi.testclient import TestClient

from getd.cli.app import main
from getd.io.deadline import DeadlineExceeded, check_deadline
from getd.serving.app import create_app, static
from getd.serving.batching import Batcher
from getd.serving.middleware import ServeSettings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = {"model": {"entity_dim": 8, "ring_ranks": 4}, "training": {"epochs": 3, "threads": 1}}
    return getd.train(
        getd.load("demo"), out=tmp_path_factory.mktemp("serving") / "demo", config=config
    )


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[TestClient]:
    with TestClient(create_app(run)) as client:
        yield client


QUESTION = {"relation": "transfer", "entities": ["Ada Hale", "?", "Oxbow United", "2016-17"]}


def test_it_answers_as_the_run_does(client: TestClient, run: Run) -> None:
    by_role = {"relation": "born in", "entities": {"city": "?", "player": "Ada Hale"}}
    several = {"relation": "plays for", "entities": ["?", "?", "2016-17"]}
    relation = {"relation": "?", "entities": ["Ada Hale", "Oxbow"]}
    asked = [QUESTION, by_role, several, relation]
    found = client.post("/predict", json={"questions": asked, "top": 3, "why": True}).json()[
        "answered"
    ]
    for question, answered in zip(asked, found, strict=True):
        wanted = run.predict(question["relation"], question["entities"], top=3)
        assert [answer["names"] for answer in answered["answers"]] == [
            list(answer.names) for answer in wanted
        ]
        for answer, own in zip(answered["answers"], wanted, strict=True):
            assert answer["score"] == pytest.approx(own.score, abs=1e-5)
            assert answer["probability"] == (
                None if own.probability is None else pytest.approx(own.probability, abs=1e-5)
            )
            assert answer["confidence"] == (
                None if own.confidence is None else pytest.approx(own.confidence, abs=1e-5)
            )
    (why,) = found[0]["answers"][0]["why"]
    alone = client.post("/why", json={**QUESTION, "names": found[0]["answers"][0]["names"]}).json()[
        "why"
    ]
    assert alone == [why]
    assert found[3]["answers"][0]["why"] is None


def test_it_rates_as_the_run_does(client: TestClient, run: Run) -> None:
    facts = [{"relation": "born in", "entities": ["Ada Hale", "Oxbow"]}]
    (found,) = client.post("/score", json={"facts": facts}).json()["facts"]
    ids = run.kb.entities.ids(["Ada Hale", "Oxbow"])[None]
    (wanted,) = run.predictor.rate(Facts(run.kb.relations.ids(["born in"]), ids))
    assert found["plausibility"] == pytest.approx(wanted.plausibility)
    assert (found["ranks"], found["known"]) == (list(wanted.ranks), wanted.known)


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        (
            "/predict",
            {"questions": [{**QUESTION, "relation": "trasfer"}]},
            "unknown relation 'trasfer'; did you mean 'transfer'?",
        ),
        (
            "/predict",
            {"questions": []},
            "questions: list should have at least 1 item after validation, not 0",
        ),
        (
            "/predict",
            {"questions": [QUESTION], "top": 0},
            "top: input should be greater than or equal to 1",
        ),
        ("/predict", {"questions": [QUESTION], "tip": 1}, "tip: extra inputs are not permitted"),
        ("/why", {**QUESTION, "names": ["a", "b"]}, "expected 1 names for what is open, found 2"),
        ("/score", {"facts": [QUESTION]}, "unknown entity '?'"),
        (
            "/predict",
            {"questions": [{"relation": "plays for", "entities": ["?", "?", "2016-17"]}] * 5},
            "expected 4 questions with several '?' at most, and 'top' of 64 at most for them, found 5 and 10",
        ),
    ],
)
def test_mistakes_are_one_line(
    client: TestClient, path: str, body: dict[str, object], detail: str
) -> None:
    reply = client.post(path, json=body)
    assert (reply.status_code, reply.json()) == (422, {"detail": detail})


def test_names_are_found_by_their_beginning_their_middle_and_their_likeness(
    client: TestClient,
) -> None:
    assert client.get("/entities", params={"q": "ada ha"}).json() == ["Ada Hale"]
    assert "Oxbow United" in client.get("/entities", params={"q": "united"}).json()
    assert client.get("/entities", params={"q": "oxbwo unted"}).json()[0] == "Oxbow United"
    assert len(client.get("/entities", params={"limit": 7}).json()) == 7


def test_what_it_tells_of_itself(client: TestClient, run: Run) -> None:
    about = client.get("/health").json()
    assert (about["status"], about["entities"], about["facts"]["train"]) == (
        "ok",
        run.kb.n_entities,
        1844,
    )
    assert client.get("/relations").json()[0] == {
        "relation": "plays for",
        "roles": ["player", "club", "season"],
        "facts": 864,
    }
    points = client.get("/map").json()
    assert {point["entity"] for point in points} == set(run.kb.entities)
    assert 'getd_requests_total{path="/health",status="200"}' in client.get("/metrics").text


def test_pages_need_nothing_from_elsewhere(client: TestClient) -> None:
    for path, name in (("/", "page.html"), ("/docs", "docs.html")):
        page = client.get(path).text
        assert page == static(name)
        assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_a_token_is_asked_for(run: Run) -> None:
    with TestClient(create_app(run, ServeSettings(token="word"))) as client:
        assert client.post("/predict", json={"questions": [QUESTION]}).status_code == 401
        assert client.get("/relations", headers={"Authorization": "Bearer wird"}).status_code == 401
        assert client.get("/relations", headers={"Authorization": "Bearer word"}).status_code == 200
        assert client.get("/health").status_code == 200


def test_large_and_slow_requests_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with TestClient(create_app(run, ServeSettings(max_body=100))) as client:
        large = client.post("/predict", json={"questions": [QUESTION] * 5})
        assert (large.status_code, large.json()["detail"]) == (
            413,
            "expected a body of 100 bytes at most",
        )
        chunked = client.post("/predict", content=iter([b"x" * 60, b"x" * 60]))
        assert chunked.status_code == 413
    with TestClient(create_app(run, ServeSettings(timeout=0.2))) as client:
        monkeypatch.setattr(Run, "answer", lambda *arguments: time.sleep(0.6))
        slow = client.post("/predict", json={"questions": [QUESTION]})
        assert (slow.status_code, slow.json()["detail"]) == (503, "it took longer than 0.2 seconds")


def test_questions_that_come_while_others_are_answered_go_together() -> None:
    batches, go = [], threading.Event()

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        go.wait(60)
        batches.append((kind, list(questions)))
        return [-question for question in questions]

    async def ask() -> list[list[int]]:
        batcher: Batcher[int, int, str] = Batcher(answer, most=4, seconds=99)
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
        batcher: Batcher[int, int, int] = Batcher(answer, most=4, seconds=99)
        asked = [batcher.ask(2, [0]), batcher.ask(2, [1]), batcher.ask(2, [2]), batcher.ask(3, [1])]
        return await asyncio.gather(*asked, return_exceptions=True)

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
        batcher: Batcher[int, int, str] = Batcher(answer, most=4, seconds=0.1)
        return await asyncio.gather(
            batcher.ask("a", [0]), batcher.call(lambda: answer("b", [1])), return_exceptions=True
        )

    assert [type(found) for found in asyncio.run(ask())] == [DeadlineExceeded, DeadlineExceeded]
    assert len(steps) < 900


def test_requests_that_gave_up_are_not_answered() -> None:
    answered, begun, go = [], threading.Event(), threading.Event()

    def answer(kind: str, questions: Sequence[int]) -> list[int]:
        begun.set()
        go.wait(60)
        answered.extend(questions)
        return list(questions)

    async def ask() -> None:
        batcher: Batcher[int, int, str] = Batcher(answer, most=1, seconds=99)
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


def test_who_has_left_is_not_answered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, left = [], asyncio.Event()

    def answer(questions: object, *rest: object) -> list[object]:
        for step in range(1000):
            check_deadline()
            steps.append(step)
            time.sleep(0.01)
        return []

    monkeypatch.setattr(run, "answer", answer)
    app, body = (
        create_app(run, ServeSettings(timeout=99)),
        json.dumps({"questions": [QUESTION]}).encode(),
    )
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/predict",
        "raw_path": b"/predict",
        "query_string": b"",
    }
    scope |= {
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


def test_idle_connections_are_closed_and_a_taken_port_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import uvicorn

    from getd.serving import idle_timeout as protocol

    monkeypatch.setattr(protocol, "PATIENCE", 1.0)
    config = uvicorn.Config(
        create_app(run), log_level="warning", http=protocol.IdleTimeoutProtocol, ws="none"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, server = listener.getsockname()[1], uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as idle:
                idle.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
                assert idle.recv(100) == b""
            with socket.create_connection(("127.0.0.1", port), timeout=60) as busy:
                for _ in range(2):
                    busy.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert whole_reply(busy).startswith(b"HTTP/1.1 200")
                    time.sleep(
                        1.2 * protocol.PATIENCE
                    )  # idle between two requests, which it may be
            assert main(["serve", str(run.path), "--port", str(port)]) == 1
            assert re.fullmatch(
                rf"cannot listen at 127.0.0.1, port {port}: .*\n", capfd.readouterr().err
            )
        finally:
            server.should_exit = True
            thread.join()
    assert main(["serve", str(run.path), "--token", ""]) == 2


def whole_reply(connection: socket.socket) -> bytes:
    """Head and body of a reply, in however many pieces they come."""
    reply = b""
    while b"\r\n\r\n" not in reply:
        piece = connection.recv(10_000)
        assert piece, f"the connection was closed after {reply!r}"
        reply += piece
    head, _, body = reply.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"content-length: (\d+)", head.lower())
    while len(body) < int(length):
        piece = connection.recv(10_000)
        assert piece, f"the connection was closed after {body!r}"
        body += piece
    return head + body


def test_it_is_reached_by_its_own_names_alone(run: Run) -> None:
    with TestClient(create_app(run, ServeSettings(hosts=("127.0.0.1", "[::1]")))) as client:
        for host, status in (
            ("127.0.0.1:8000", 200),
            ("[::1]:8000", 200),
            ("[::1]", 200),
            ("evil.example", 400),
        ):
            assert client.get("/health", headers={"Host": host}).status_code == status


def test_fuzzed_requests_never_break_it(run: Run) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings

    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(run, ServeSettings(timeout=10))
    )
    for operation in schema.get_all_operations():
        cases = operation.ok().as_strategy()

        @settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
        @given(cases)
        def check(case: object) -> None:
            reply = case.call()  # type: ignore[attr-defined]
            assert reply.status_code in (200, 400, 413, 422)
            assert "Traceback" not in reply.text
            assert str(Path(run.path).parent) not in reply.text

        check()

"""Serving a run of JF17K-3: many questions at once, many clients at once, senseless requests.

In process, 32 questions are answered as one batch and one by one. Over HTTP on loopback, 32 clients
ask one question after the other, with and without the answering of simultaneous requests together;
the service is a process of its own, and so are the clients. Then 2,000 requests are drawn from the
service's own description, and what they must never meet is counted. The model has random weights,
which costs what trained ones cost; answers are checked against those of the run.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks.harness import ROOT, Figure, Plot, Result, Series, Skipped, best
from getd.api import open_run, train
from getd.calibration.calibrate import Calibration
from getd.calibration.confidence import Confidence
from getd.datasets.load import load
from getd.errors import DataNotFound
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.question import Question, parse_question
from getd.run import Run

TOGETHER, CLIENTS, SECONDS, TOP, FUZZED = 32, 32, 5.0, 10, 2000

_CLIENTS = """
import json, selectors, socket, sys, time
port, clients, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
head = "POST /predict HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n"
requests = []
for body in json.loads(sys.stdin.read()):
    body = body.encode()
    requests.append(f"{head}Content-Length: {len(body)}\\r\\n\\r\\n".encode() + body)

class Client:
    def __init__(self, number):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.index = number
    def ask(self):
        self.reply, self.size = b"", None
        self.start = time.perf_counter()
        self.socket.sendall(requests[self.index % len(requests)])
        self.index += clients
    def receive(self):
        self.reply += self.socket.recv(1 << 16)
        if self.size is None and b"\\r\\n\\r\\n" in self.reply:
            head, _, _ = self.reply.lower().partition(b"\\r\\n\\r\\n")
            assert head.startswith(b"http/1.1 200"), self.reply
            self.size = len(head) + 4 + int(head.partition(b"content-length:")[2].split()[0])
        return self.size == len(self.reply)

selector = selectors.DefaultSelector()
everyone = [Client(number) for number in range(clients)]
taken = []
cpu = time.process_time()
end = time.perf_counter() + seconds
for client in everyone:
    selector.register(client.socket, selectors.EVENT_READ, client)
    client.ask()
while selector.get_map():
    for key, _ in selector.select():
        client = key.data
        if client.receive():
            now = time.perf_counter()
            taken.append(now - client.start)
            if now < end:
                client.ask()
            else:
                selector.unregister(client.socket)
print(json.dumps({"taken": taken, "cpu": time.process_time() - cpu}))
"""


@dataclass(frozen=True)
class Load:
    """What clients measured."""

    taken: list[float]  # seconds of each request
    cpu: float  # seconds of processor time that the clients themselves took


def measure(quick: bool = False) -> Result:
    """Batches, clients, nonsense."""
    try:
        kb = load("demo" if quick else "JF17K-3")
    except DataNotFound as missing:
        raise Skipped(str(missing)) from None
    with tempfile.TemporaryDirectory() as name:
        run = _run(kb, Path(name) / "run")
        questions = _questions(run, 8 if quick else 256)
        single, batch = _in_process(run, questions[: 4 if quick else TOGETHER], 1 if quick else 7)
        bodies = [json.dumps(_body(question)) for question in questions]
        with _served(run.path, "on") as together, _served(run.path, "off") as apart:
            _check(run, questions[0], together)
            ports = {"together": together, "one by one": apart}
            taken: dict[str, list[list[float]]] = {kind: [] for kind in ports}
            client_cpu = []
            for _ in range(1 if quick else 3):
                for kind, port in ports.items():
                    clients, duration = (2, 0.5) if quick else (CLIENTS, SECONDS)
                    measured = _ask(port, bodies, clients, duration)
                    taken[kind].append(measured.taken)
                    client_cpu.append(measured.cpu / len(measured.taken))
        fuzzed = _fuzz(run, 50 if quick else FUZZED)
    seconds = 0.5 if quick else SECONDS
    rate = {kind: max(len(each) / seconds for each in rounds) for kind, rounds in taken.items()}
    p95 = {
        kind: min(float(np.quantile(each, 0.95)) for each in rounds)
        for kind, rounds in taken.items()
    }
    figures = [
        Figure(
            f"{TOGETHER} questions as a batch, throughput over one by one",
            single / batch,
            "x",
        ),
        Figure(
            "one question, in process",
            1000 * single / len(questions[: 4 if quick else TOGETHER]),
            "ms",
        ),
        Figure(
            "throughput, together over one by one",
            rate["together"] / rate["one by one"],
            "x",
            1.0,
            at_least=True,
        ),
        Figure(
            "95 % of requests, together over one by one",
            p95["together"] / p95["one by one"],
            "x",
            1.0,
        ),
        Figure("requests, together", rate["together"], "requests/s", 1200.0, at_least=True),
        Figure("requests, one by one", rate["one by one"], "requests/s"),
        Figure("95 % of requests, together", 1000 * p95["together"], "ms", 40.0),
        Figure("95 % of requests, one by one", 1000 * p95["one by one"], "ms"),
        Figure("processor time of the clients, a request", 1000 * min(client_cpu), "ms"),
        Figure("requests drawn from the description", float(sum(fuzzed.values())), "requests"),
        Figure(
            "of them answered with 500, not at all, or with a path",
            float(fuzzed.get("wrong", 0)),
            "requests",
            0.0,
        ),
    ]
    shares = np.linspace(0, 1, 101)[1:]
    return Result(
        name="serving",
        figures=figures,
        plots=[
            Plot(
                f"{CLIENTS} clients",
                "ms",
                "share of requests answered",
                [
                    Series(
                        kind,
                        [1000 * float(v) for v in np.quantile(min(rounds, key=np.median), shares)],
                        shares.tolist(),
                    )
                    for kind, rounds in taken.items()
                ],
                log=False,
            )
        ],
        details={
            "statuses": fuzzed,
            "requests": {kind: [len(each) for each in rounds] for kind, rounds in taken.items()},
        },
        packages=("getd", "fastapi", "torch", "uvicorn"),
    )


def _run(kb: KnowledgeBase, out: Path) -> Run:
    """A run as training leaves it, after a moment of it."""
    config = {
        "model": {"entity_dim": 50, "ring_ranks": 50},
        "training": {"learning_rate": 1e-6, "validate_every": 1000},
    }
    train(
        kb.with_splits(train={n: f.take(slice(0, 256)) for n, f in kb.split("train").items()}),
        out=out,
        config=config,
        epochs=1,
    )
    run = open_run(out)
    run.folder.write_knowledge_base(kb)
    confidence = {str(n): Confidence(slope=0.5, fit_slope=0.5, intercept=2.0) for n in kb.arities}
    calibration = Calibration(temperature={str(n): 0.7 for n in kb.arities}, confidence=confidence)
    run.folder.write_json("calibration.json", calibration.model_dump())
    return open_run(out)


def _questions(run: Run, number: int) -> list[Question]:
    """Facts of test, each with one entity hidden."""
    facts = max(run.kb.split("test").values(), key=len)
    questions = []
    for row in range(number):
        relation, *entities = run.kb.decode(
            facts.take(slice(row % len(facts), row % len(facts) + 1))
        )[0]
        entities[row % len(entities)] = "?"
        questions.append(parse_question(run.kb, relation, entities))
    return questions


def _in_process(run: Run, questions: list[Question], repeats: int) -> list[float]:
    run.predictor.prepare()
    whole = run.answer(questions, TOP)
    for question, answers in zip(questions, whole, strict=True):
        (alone,) = run.answer([question], TOP)
        assert [a.name for a in alone][:3] == [a.name for a in answers][:3]
    return best(
        lambda: [run.answer([question], TOP) for question in questions],
        lambda: run.answer(questions, TOP),
        repeats=repeats,
    )


def _body(question: Question) -> dict[str, object]:
    relation, *entities = question.text
    return {"questions": [{"relation": relation, "entities": entities}], "top": TOP}


@contextmanager
def _served(path: Path, batching: str) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "getd", "serve", str(path), "--port", str(port)]
    if batching == "off":
        command.append("--no-batching")
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        server.terminate()
        server.wait(20)


def _check(run: Run, question: Question, port: int) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/predict",
        json.dumps(_body(question)).encode(),
        {"Content-Type": "application/json"},
    )
    answers = json.load(urllib.request.urlopen(request))["answered"][0]["answers"]
    (expected,) = run.answer([question], TOP)
    assert [answer["entity"] for answer in answers] == [answer.name for answer in expected]


def _ask(port: int, bodies: list[str], clients: int, seconds: float) -> Load:
    """Let clients ask one question after the other; one thread and plain sockets serve them all."""
    command = [sys.executable, "-c", _CLIENTS, str(port), str(clients), str(seconds)]
    done = subprocess.run(
        command, input=json.dumps(bodies), capture_output=True, text=True, check=True
    )
    return Load(**json.loads(done.stdout))


def _fuzz(run: Run, number: int) -> dict[str, int]:
    """Statuses of requests drawn from the service's description; ``wrong``: what must never be."""
    try:
        import schemathesis
        from hypothesis import HealthCheck, Phase, given, seed, settings
    except ModuleNotFoundError as missing:
        raise Skipped(f"it needs {missing.name}; pip install 'getd[dev]'") from None
    from getd.serving.app import create_app
    from getd.serving.middleware import ServeSettings

    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(run.opened, ServeSettings(timeout=20))
    )
    operations = [operation.ok() for operation in schema.get_all_operations()]
    statuses: dict[str, int] = {}

    def note(key: str) -> None:
        statuses[key] = statuses.get(key, 0) + 1

    many = -(-number // len(operations))
    quiet = settings(
        max_examples=many,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        phases=[Phase.generate],
    )
    for turn, operation in enumerate(cycle(operations)):  # some have but one request to draw
        if sum(statuses.values()) >= number:
            break

        @seed(turn)
        @quiet
        @given(operation.as_strategy())
        def ask(case: object) -> None:
            reply = case.call()  # type: ignore[attr-defined]
            leaks = "Traceback" in reply.text or str(run.path.parent) in reply.text
            note("wrong" if reply.status_code >= 500 or leaks else str(reply.status_code))

        ask()
    return statuses

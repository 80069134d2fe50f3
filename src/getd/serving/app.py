"""The HTTP service of a run."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from getd.deadline import TookTooLong
from getd.errors import FactError
from getd.facts.facts import Facts, count, join
from getd.models.base import DotProductModel
from getd.prediction.answers import Answer
from getd.prediction.question import Question, fill_question, parse_fact, parse_question
from getd.prediction.reasons import Why
from getd.prediction.run import Run
from getd.serving.batching import Batcher
from getd.serving.search import NameSearch

VERSION = version("getd")
MOST_QUESTIONS = 64
MOST_TOP = 1000
MOST_NAME = 1000  # letters
MOST_ARITY = 64
MOST_MAPPED = 4000  # entities on the map
MOST_WHY = 10  # answers of a request whose reasons are told
MOST_JOINT = 4  # questions of a request with several open positions
MOST_JOINT_TOP = 64
MOST_TYPED = 100  # letters of a search
CLIENT_LEFT = 499  # the status of requests that nobody waits for any more, in the metrics
PATHS = frozenset(
    ("/predict", "/why", "/score", "/entities", "/relations", "/map", "/health", "/metrics", "/", "/docs")
)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'"),
)
Name = Annotated[str, Field(max_length=MOST_NAME)]


@dataclass(frozen=True)
class ServeSettings:
    """How a run is served."""

    token: str | None = None  # that requests must bear
    max_body: int = 1 << 20  # bytes
    timeout: float = 30.0  # seconds that a request may take
    hosts: tuple[str, ...] = ()  # names it may be reached by; none: any
    batching: bool = True  # whether requests that come at once are answered together
    batch: int = 256  # questions answered together


class Body(BaseModel):
    """The base of what is sent and received."""

    model_config = ConfigDict(extra="forbid")


class AskedQuestion(Body):
    """A relation and its entities, in order or by role; ``?`` for what is asked."""

    relation: Name
    entities: (
        Annotated[list[Name], Field(max_length=MOST_ARITY)]
        | Annotated[
            dict[Name, Name | Annotated[list[Name], Field(max_length=MOST_ARITY)]], Field(max_length=MOST_ARITY)
        ]
    )


class PredictRequest(Body):
    """Questions, and how they are to be answered."""

    questions: Annotated[list[AskedQuestion], Field(min_length=1, max_length=MOST_QUESTIONS)]
    top: Annotated[int, Field(ge=1, le=MOST_TOP)] = 10
    include_known: bool = False
    why: bool = False


class FoundReason(Body):
    """A training fact that supports an answer."""

    fact: list[str]
    pull: float


class FoundWhy(Body):
    """What supports an entity of an answer."""

    facts: list[FoundReason]
    similar: list[str]


class FoundAnswer(Body):
    """What fills the open slots of a question."""

    names: list[str]
    score: float
    probability: float | None
    confidence: float | None
    known: bool
    why: list[FoundWhy] | None = None


class Answered(Body):
    """A question and its answers."""

    question: list[str]
    answers: list[FoundAnswer]


class PredictResponse(Body):
    """The answers of each question, in their order."""

    answered: list[Answered]


class WhyRequest(AskedQuestion):
    """A question, and an answer to it: an entity for each open position."""

    names: Annotated[list[Name], Field(min_length=1, max_length=MOST_ARITY)]


class WhyResponse(Body):
    """What supports each entity of the answer."""

    why: list[FoundWhy]


class ScoreRequest(Body):
    """Facts to rate."""

    facts: Annotated[list[AskedQuestion], Field(min_length=1, max_length=MOST_QUESTIONS)]


class FoundRating(Body):
    """What the run thinks of a fact."""

    fact: list[str]
    plausibility: float
    confidence: float | None
    ranks: list[float]
    known: bool


class ScoreResponse(Body):
    """The ratings of facts, in their order."""

    facts: list[FoundRating]


class FoundRelation(Body):
    """A relation, its roles, and in how many facts it stands."""

    relation: str
    roles: list[str]
    facts: int


class Overview(Body):
    """The run and its knowledge base."""

    status: str
    version: str
    data: str
    model: str
    entities: int
    relations: int
    facts: dict[str, int]


class MapPoint(Body):
    """An entity on the map."""

    entity: str
    x: float
    y: float
    facts: int


class Problem(Body):
    """What was wrong with a request."""

    detail: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": told}
    for code, told in (
        (400, "The body is not what it says it is."),
        (401, "The token is missing or wrong."),
        (413, "The body is too large."),
        (422, "A name is unknown, or the request does not fit the schema."),
        (503, "It took too long, or the service is ending."),
    )
}


def create_app(run: Run, settings: ServeSettings | None = None) -> FastAPI:
    """The service of a run."""
    service = Service(run, settings or ServeSettings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="getd", version=VERSION, docs_url=None, redoc_url=None, lifespan=lifespan, responses=PROBLEMS)
    app.add_middleware(Guard, service=service)
    app.exception_handler(RequestValidationError)(_explain)
    app.exception_handler(FactError)(_refuse)
    allowed = [Depends(service.check_token)]

    @app.post("/predict", dependencies=allowed)
    async def predict(asked: PredictRequest) -> PredictResponse:
        """Answer questions."""
        return await service.predict(asked)

    @app.post("/why", dependencies=allowed)
    async def why(asked: WhyRequest) -> WhyResponse:
        """Tell the training facts that support an answer most."""
        return await service.why(asked)

    @app.post("/score", dependencies=allowed)
    async def score(asked: ScoreRequest) -> ScoreResponse:
        """Rate facts."""
        return await service.score(asked)

    @app.get("/entities", dependencies=allowed)
    async def entities(
        q: Annotated[str, Query(max_length=MOST_TYPED)] = "", limit: Annotated[int, Query(ge=1, le=100)] = 20
    ) -> list[str]:
        """Entities that begin with a text, hold it, or resemble it."""
        return await service.find(q, limit)

    @app.get("/relations", dependencies=allowed)
    async def relations() -> list[FoundRelation]:
        """All relations, those of most facts first."""
        return service.relations

    @app.get("/map", dependencies=allowed)
    async def entity_map() -> list[MapPoint]:
        """Entities on a plane: alike is near."""
        return await service.batcher.call(lambda: service.points)

    @app.get("/health")
    async def health() -> Overview:
        """Whether the service is well, and what it serves."""
        return service.overview

    @app.get("/metrics", dependencies=allowed, response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(generate_latest(service.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> str:
        return static("page.html")

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> str:
        return static("docs.html")

    return app


class Service:
    """What the service holds."""

    def __init__(self, run: Run, settings: ServeSettings) -> None:
        self.run, self.settings = run, settings
        self.batcher: Batcher[Question, list[Answer], tuple[int, bool]] = Batcher(
            self._answer, settings.batch, settings.timeout, settings.batching
        )
        facts = join(*run.kb.splits.values())
        self._degree = np.zeros(run.kb.n_entities, dtype=np.int64)
        held = np.zeros(run.kb.n_relations, dtype=np.int64)
        for block in facts.values():
            np.add.at(self._degree, block.entities.reshape(-1), 1)
            np.add.at(held, block.relation, 1)
        self.search = NameSearch(run.kb.entities, self._degree)
        signatures = zip(run.kb.relations, run.kb.signatures, held.tolist(), strict=True)
        found = [FoundRelation(relation=label, roles=list(r.roles), facts=n) for label, r, n in signatures]
        self.relations = sorted(found, key=lambda relation: -relation.facts)
        self.overview = Overview(
            status="ok",
            version=VERSION,
            data=run.kb.name,
            model=run.folder.read_config()["model"]["name"],
            entities=run.kb.n_entities,
            relations=run.kb.n_relations,
            facts={split: count(blocks) for split, blocks in run.kb.splits.items()},
        )
        self.points = self._points()
        self.searching = ThreadPoolExecutor(max_workers=1, thread_name_prefix="getd-names")
        _ = run.known, run.roles, run.reasons  # made now, not while the first request waits
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "getd_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "getd_request_seconds", "How long requests took, by path.", ["path"], registry=self.registry
        )

    async def predict(self, asked: PredictRequest) -> PredictResponse:
        """Answer questions."""
        questions = await asyncio.to_thread(self._parse, asked.questions)
        joint = sum(len(question.open) > 1 for question in questions)
        if joint > MOST_JOINT or (joint and asked.top > MOST_JOINT_TOP):
            told = f"{MOST_JOINT} questions with several '?' at most, and 'top' of {MOST_JOINT_TOP} at most for them"
            raise HTTPException(422, f"expected {told}, found {joint} and {asked.top}")
        kind = asked.top, asked.include_known
        if joint:  # takes its time, and shares no work with others
            answers = await self.batcher.call(lambda: self._answer(kind, questions))
        else:
            answers = await self.batcher.ask(kind, questions)
        reasons: dict[tuple[int, int], list[Why]] = {}
        if asked.why:
            reasons = await self.batcher.call(lambda: self._reasons(questions, answers))
        return PredictResponse(
            answered=[
                Answered(
                    question=list(question.text),
                    answers=[_found(answer, reasons.get((row, place))) for place, answer in enumerate(answers[row])],
                )
                for row, question in enumerate(questions)
            ]
        )

    async def find(self, text: str, limit: int) -> list[str]:
        """Entities by what was typed."""
        return await asyncio.get_running_loop().run_in_executor(self.searching, self.search.find, text, limit)

    async def why(self, asked: WhyRequest) -> WhyResponse:
        """Tell the reasons for an answer."""
        question, fact = await asyncio.to_thread(self._parse_answer, asked)
        reasons = await self.batcher.call(lambda: self.run.why_fact(fact, question.open))
        return WhyResponse(why=[_found_why(each) for each in reasons])

    async def score(self, asked: ScoreRequest) -> ScoreResponse:
        """Rate facts."""
        facts = await asyncio.to_thread(self._parse_facts, asked.facts)
        rated = await self.batcher.call(lambda: [self.run.score(fact)[0] for fact in facts])
        return ScoreResponse(
            facts=[
                FoundRating(
                    fact=list(rating.fact),
                    plausibility=rating.plausibility,
                    confidence=rating.confidence,
                    ranks=list(rating.ranks),
                    known=rating.known,
                )
                for rating in rated
            ]
        )

    def close(self) -> None:
        """End what works."""
        self.batcher.close()
        self.searching.shutdown(wait=False, cancel_futures=True)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """For the metrics."""
        path = path if path in PATHS else "other"
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def check_token(self, request: Request) -> None:
        """Whether a request bears the token, where there is one."""
        if self.settings.token is None:
            return
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.settings.token}".encode()):
            raise HTTPException(401, "expected the header 'Authorization: Bearer TOKEN' with the right token")

    def _parse(self, asked: Sequence[AskedQuestion]) -> list[Question]:
        return [parse_question(self.run.kb, each.relation, each.entities) for each in asked]

    def _parse_answer(self, asked: WhyRequest) -> tuple[Question, Facts]:
        question = self._parse([asked])[0]
        return question, fill_question(self.run.kb, question, asked.names)

    def _parse_facts(self, asked: Sequence[AskedQuestion]) -> list[Facts]:
        return [parse_fact(self.run.kb, each.relation, each.entities) for each in asked]

    def _answer(self, kind: tuple[int, bool], questions: Sequence[Question]) -> list[list[Answer]]:
        top, include_known = kind
        return self.run.answer(questions, top, include_known)

    def _reasons(self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]]) -> Any:
        places = [
            (row, place)
            for row, question in enumerate(questions)
            if question.open
            for place in range(len(answers[row]))
        ]
        best = sorted(places, key=lambda item: item[1])[:MOST_WHY]  # of each question the first, then the second …
        return {(row, place): self.run.why(questions[row], answers[row][place]) for row, place in best}

    def _points(self) -> list[MapPoint]:
        """The two directions in which the vectors of entities differ most."""
        model = self.run.bare_model
        if not isinstance(model, DotProductModel):
            return []
        ids = np.sort(np.argsort(-self._degree, kind="stable")[:MOST_MAPPED])
        with torch.no_grad():
            table = model.candidates(0)[torch.tensor(ids)].double()
        table = torch.nn.functional.normalize(table, dim=1)
        table = table - table.mean(dim=0)
        _, _, directions = torch.linalg.svd(table, full_matrices=False)
        plane = (table @ directions[:2].T).tolist()
        names = self.run.kb.entities.decode(ids)
        return [
            MapPoint(entity=name, x=place[0], y=place[-1], facts=int(self._degree[i]))
            for name, place, i in zip(names, plane, ids, strict=True)
        ]


class Guard:
    """Refuses bodies that are too large and requests that take too long; counts and times all."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, settings = time.perf_counter(), 0, self.service.settings

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        async def answer() -> None:
            if settings.hosts and _host(scope) not in settings.hosts:
                told = f"expected one of the hosts {', '.join(settings.hosts)}"
                await _problem(400, told)(scope, receive, noted)
                return
            body = await _read(scope, receive, settings.max_body)
            if body is None:
                await _problem(413, f"expected a body of {settings.max_body:,} bytes at most")(scope, receive, noted)
            else:
                await _while_connected(self.app(scope, _once(body), noted), receive)

        try:
            await asyncio.wait_for(answer(), settings.timeout)
        except (TimeoutError, TookTooLong):
            if status:  # an answer is on its way already
                raise
            await _problem(503, f"it took longer than {settings.timeout:g} seconds")(scope, receive, noted)
        except Exception:
            logging.getLogger("getd").exception("a request failed")
            if status:
                raise
            await _problem(500, "something went wrong here; the service's log tells more")(scope, receive, noted)
        finally:
            self.service.count_request(scope["path"], status or CLIENT_LEFT, time.perf_counter() - start)


def _host(scope: Scope) -> str:
    """The name that a request reached us by, without the port."""
    found: str = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    return found.rpartition(":")[0] if found.rpartition(":")[2].isdigit() else found


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The body of a request; ``None``: it is longer than it may be."""
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > most:
        return None
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            return None
    return body


def _once(body: bytes) -> Receive:
    """Receives a body that was read already."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _while_connected(work: Awaitable[None], receive: Receive) -> None:
    """Do it, unless whoever asked leaves before."""
    working, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, left), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        left.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def static(name: str) -> str:
    """A file of the page."""
    return (files("getd.serving") / "static" / name).read_text(encoding="utf-8")


def _found(answer: Answer, reasons: Sequence[Why] | None) -> FoundAnswer:
    return FoundAnswer(
        names=list(answer.names),
        score=answer.score,
        probability=answer.probability,
        confidence=answer.confidence,
        known=answer.known,
        why=None if reasons is None else [_found_why(each) for each in reasons],
    )


def _found_why(why: Why) -> FoundWhy:
    facts = [FoundReason(fact=list(reason.fact), pull=reason.pull) for reason in why.facts]
    return FoundWhy(facts=facts, similar=list(why.similar))


def _problem(code: int, told: str) -> JSONResponse:
    return JSONResponse({"detail": told}, status_code=code)


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    return _problem(422, str(error))


async def _explain(request: Request, error: Exception) -> JSONResponse:
    """The first thing that is wrong with a request, in one line."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return _problem(422, f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}" if place else first["msg"])

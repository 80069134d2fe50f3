"""What answers requests: a run, a thread that asks it, and what it tells of itself."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from fastapi import HTTPException, Request
from prometheus_client import CollectorRegistry, Counter, Histogram

from getd.facts.facts import Facts, count, join
from getd.facts.parse import parse_fact
from getd.models.base import DotProductModel
from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation
from getd.prediction.predictor import Predictor
from getd.prediction.question import Question, fill_question, parse_question
from getd.runs.opened import OpenedRun
from getd.serving.batching import Batcher
from getd.serving.middleware import ServeSettings
from getd.serving.name_search import NameSearch
from getd.serving.schemas import (
    Answered,
    AskedQuestion,
    FoundRating,
    FoundRelation,
    MapPoint,
    Overview,
    PredictRequest,
    PredictResponse,
    ScoreRequest,
    ScoreResponse,
    WhyRequest,
    WhyResponse,
    found_answer,
    found_why,
)

VERSION = version("getd")
MOST_MAPPED = 4000  # entities on the map
MOST_WHY = 10  # answers of a request whose reasons are told
MOST_JOINT = 4  # questions of a request with several open positions
MOST_JOINT_TOP = 64
PATHS = frozenset(
    (
        "/predict",
        "/why",
        "/score",
        "/entities",
        "/relations",
        "/map",
        "/health",
        "/metrics",
        "/",
        "/docs",
    )
)


class Service:
    """What the service holds."""

    def __init__(self, run: OpenedRun, settings: ServeSettings) -> None:
        self.run = run
        self.settings = settings
        self.predictor = Predictor(run)
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
        found = [
            FoundRelation(relation=label, roles=list(r.roles), facts=n)
            for label, r, n in signatures
        ]
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
        self.predictor.prepare()
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "getd_requests",
            "Requests by path and status.",
            ["path", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "getd_request_seconds",
            "How long requests took, by path.",
            ["path"],
            registry=self.registry,
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
        reasons: dict[tuple[int, int], list[Explanation]] = {}
        if asked.why:
            reasons = await self.batcher.call(lambda: self._reasons(questions, answers))
        return PredictResponse(
            answered=[
                Answered(
                    question=list(question.text),
                    answers=[
                        found_answer(answer, reasons.get((row, place)))
                        for place, answer in enumerate(answers[row])
                    ],
                )
                for row, question in enumerate(questions)
            ]
        )

    async def find(self, text: str, limit: int) -> list[str]:
        """Entities by what was typed."""
        return await asyncio.get_running_loop().run_in_executor(
            self.searching, self.search.find, text, limit
        )

    async def why(self, asked: WhyRequest) -> WhyResponse:
        """Tell the reasons for an answer."""
        question, fact = await asyncio.to_thread(self._parse_answer, asked)
        reasons = await self.batcher.call(lambda: self.predictor.explain_fact(fact, question.open))
        return WhyResponse(why=[found_why(each) for each in reasons])

    async def score(self, asked: ScoreRequest) -> ScoreResponse:
        """Rate facts."""
        facts = await asyncio.to_thread(self._parse_facts, asked.facts)
        rated = await self.batcher.call(lambda: [self.predictor.rate(fact)[0] for fact in facts])
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
            raise HTTPException(
                401, "expected the header 'Authorization: Bearer TOKEN' with the right token"
            )

    def _parse(self, asked: Sequence[AskedQuestion]) -> list[Question]:
        return [parse_question(self.run.kb, each.relation, each.entities) for each in asked]

    def _parse_answer(self, asked: WhyRequest) -> tuple[Question, Facts]:
        question = self._parse([asked])[0]
        return question, fill_question(self.run.kb, question, asked.names)

    def _parse_facts(self, asked: Sequence[AskedQuestion]) -> list[Facts]:
        return [parse_fact(self.run.kb, each.relation, each.entities) for each in asked]

    def _answer(self, kind: tuple[int, bool], questions: Sequence[Question]) -> list[list[Answer]]:
        top, include_known = kind
        return self.predictor.answer(questions, top, include_known)

    def _reasons(self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]]) -> Any:
        places = [
            (row, place)
            for row, question in enumerate(questions)
            if question.open
            for place in range(len(answers[row]))
        ]
        best = sorted(places, key=lambda item: item[1])[
            :MOST_WHY
        ]  # of each question the first, then the second …
        return {
            (row, place): self.predictor.explain(questions[row], answers[row][place])
            for row, place in best
        }

    def _points(self) -> list[MapPoint]:
        """The two directions in which the vectors of entities differ most."""
        model = self.run.model.bare
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

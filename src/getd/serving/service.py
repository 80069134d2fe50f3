"""Answers requests: a run, a thread that computes, and what the service says about itself."""

import asyncio
import hmac
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Annotated

import numpy as np
from fastapi import HTTPException, Query, Request, Response
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import Scope

from getd.errors import FactError
from getd.facts.facts import Blocks, count, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.parse import parse_fact
from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation
from getd.prediction.predictor import Predictor
from getd.prediction.question import Question, fill_question, parse_question
from getd.prediction.records import ExplanationRecord, RatingRecord, answered_values
from getd.runs.opened import OpenedRun
from getd.serving.batching import Batcher, Kind
from getd.serving.entity_map import entity_map
from getd.serving.middleware import ServeSettings
from getd.serving.name_search import NameSearch
from getd.serving.request_metrics import RequestMetrics
from getd.serving.schemas import (
    Overview,
    PredictRequest,
    QuestionBody,
    RelationInfo,
    ScoreRequest,
    ScoreResponse,
    WhyRequest,
    WhyResponse,
)

VERSION = version("getd")
MAX_BATCH = 256  # questions that are answered together
MAX_EXPLAINED = 10  # answers of a request
MAX_JOINT = 4  # questions of a request with several open positions
MAX_JOINT_TOP = 64  # answers of such questions
MAX_TYPED = 100  # letters of a search

Explanations = list[list[list[Explanation]]]  # by question, answer and entity


class Service:
    """What the service holds: a method for each endpoint, or a value."""

    def __init__(self, run: OpenedRun, settings: ServeSettings) -> None:
        kb = run.kb
        self.kb = kb
        self.settings = settings
        self.metrics = RequestMetrics()

        # One thread computes, another one searches names meanwhile.
        self.predictor = Predictor(run)
        self.predictor.prepare()
        max_batch = MAX_BATCH if settings.batching else 0
        self.batcher = Batcher(self._answer, max_batch, settings.timeout, settings.threads)
        self.search_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="getd-names")

        facts = join(*kb.splits.values())
        entities = np.concatenate([block.entities.reshape(-1) for block in facts.values()])
        degree = np.bincount(entities, minlength=kb.n_entities)  # as often as in facts
        self.search = NameSearch(kb.entities, degree)
        self.entity_map = entity_map(run, degree)
        self.relations = _relation_infos(kb, facts)
        self.overview = Overview(
            status="ok",
            version=VERSION,
            data=kb.name,
            model=run.folder.read_config().model_name,
            entities=kb.n_entities,
            relations=kb.n_relations,
            facts={split: count(blocks) for split, blocks in kb.splits.items()},
        )

    async def shortcut(self, scope: Scope, body: bytes) -> Response | None:
        """Answer a plain valid request for answers; None: the app is to answer, or to refuse.

        The app's own way to an endpoint takes longer than all else that a request needs.
        """
        headers = dict(scope["headers"])
        is_plain = headers.get(b"content-type") == b"application/json"
        if (scope["method"], scope["path"]) != ("POST", "/predict") or not is_plain:
            return None
        if not self._has_token(headers.get(b"authorization", b"")):
            return None
        try:
            return await self.predict(PredictRequest.model_validate_json(body))
        except (ValidationError, FactError, HTTPException):
            return None

    async def predict(self, request: PredictRequest) -> Response:
        """Answer questions."""
        questions = self._parse(request.questions)
        n_joint = sum(len(question.open) > 1 for question in questions)
        if n_joint > MAX_JOINT or (n_joint and request.top > MAX_JOINT_TOP):
            limits = f"{MAX_JOINT} questions with several '?' at most"
            limits += f", and 'top' of {MAX_JOINT_TOP} at most for them"
            raise HTTPException(422, f"expected {limits}, found {n_joint} and {request.top}")

        # Questions with several open positions take their time, and share no work with others.
        kind = (request.top, request.include_known)
        if n_joint:
            answers = await self.batcher.call(lambda: self._answer(kind, questions))
        else:
            answers = await self.batcher.ask(kind, questions)

        explanations: Explanations = [[] for _ in questions]
        if request.why:
            explanations = await self.batcher.call(lambda: self._explain(questions, answers))

        # Our own values need no validation: that would take longer than to write them.
        values = map(answered_values, questions, answers, explanations)
        return Response(to_json({"answered": list(values)}), media_type="application/json")

    async def why(self, request: WhyRequest) -> WhyResponse:
        """Return the training facts that support an answer most."""
        (question,) = self._parse([request])
        fact = fill_question(self.kb, question, request.names)
        explanations = await self.batcher.call(
            lambda: self.predictor.explain_fact(fact, question.open)
        )
        return WhyResponse(why=[ExplanationRecord.model_validate(each) for each in explanations])

    async def score(self, request: ScoreRequest) -> ScoreResponse:
        """Rate facts."""
        facts = [parse_fact(self.kb, fact.relation, fact.entities) for fact in request.facts]
        ratings = await self.batcher.call(
            lambda: [rating for fact in facts for rating in self.predictor.rate(fact)]
        )
        return ScoreResponse(facts=[RatingRecord.model_validate(rating) for rating in ratings])

    async def entities(
        self,
        q: Annotated[str, Query(max_length=MAX_TYPED)] = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> list[str]:
        """Find entities that begin with a text, contain it, or resemble it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.search_thread, self.search.find, q, limit)

    async def check_token(self, request: Request) -> None:
        """Refuse a request without the token, if the service has one."""
        if not self._has_token(request.headers.get("authorization", "").encode()):
            raise HTTPException(
                401, "expected the header 'Authorization: Bearer TOKEN' with the right token"
            )

    def _has_token(self, header: bytes) -> bool:
        token = self.settings.token
        return token is None or hmac.compare_digest(header, f"Bearer {token}".encode())

    def close(self) -> None:
        """End the threads."""
        self.batcher.close()
        self.search_thread.shutdown(wait=False, cancel_futures=True)

    def _parse(self, questions: Sequence[QuestionBody]) -> list[Question]:
        return [parse_question(self.kb, body.relation, body.entities) for body in questions]

    def _answer(self, kind: Kind, questions: Sequence[Question]) -> list[list[Answer]]:
        return self.predictor.answer(questions, *kind)

    def _explain(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]]
    ) -> Explanations:
        """Explain the first answer of each question, then the second …, as many as are allowed."""
        pairs = []
        for row, question in enumerate(questions):
            if question.open:
                pairs += [(index, row) for index in range(len(answers[row]))]

        explanations: Explanations = [[] for _ in questions]
        for index, row in sorted(pairs)[:MAX_EXPLAINED]:
            explanations[row].append(self.predictor.explain(questions[row], answers[row][index]))
        return explanations


def _relation_infos(kb: KnowledgeBase, facts: Blocks) -> list[RelationInfo]:
    """Describe the relations, those of most facts first."""
    ids = np.concatenate([block.relation for block in facts.values()])
    counts = np.bincount(ids, minlength=kb.n_relations).tolist()
    infos = []
    for label, relation, number in zip(kb.relations, kb.signatures, counts, strict=True):
        infos.append(RelationInfo(relation=label, roles=list(relation.roles), facts=number))
    return sorted(infos, key=lambda info: -info.facts)

"""What the service is sent and what it sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation

MOST_QUESTIONS = 64
MOST_TOP = 1000
MOST_NAME = 1000  # letters
MOST_ARITY = 64
Name = Annotated[str, Field(max_length=MOST_NAME)]


class Body(BaseModel):
    """The base of what is sent and received."""

    model_config = ConfigDict(extra="forbid")


class AskedQuestion(Body):
    """A relation and its entities, in order or by role; ``?`` for what is asked."""

    relation: Name
    entities: (
        Annotated[list[Name], Field(max_length=MOST_ARITY)]
        | Annotated[
            dict[Name, Name | Annotated[list[Name], Field(max_length=MOST_ARITY)]],
            Field(max_length=MOST_ARITY),
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


def found_answer(answer: Answer, reasons: Sequence[Explanation] | None) -> FoundAnswer:
    return FoundAnswer(
        names=list(answer.names),
        score=answer.score,
        probability=answer.probability,
        confidence=answer.confidence,
        known=answer.known,
        why=None if reasons is None else [found_why(each) for each in reasons],
    )


def found_why(why: Explanation) -> FoundWhy:
    facts = [FoundReason(fact=list(reason.fact), pull=reason.pull) for reason in why.facts]
    return FoundWhy(facts=facts, similar=list(why.similar))

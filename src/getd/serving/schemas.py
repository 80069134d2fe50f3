"""What the service receives and sends; answers, ratings and explanations are records."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from getd.prediction.records import AnsweredRecord, ExplanationRecord, RatingRecord

MAX_QUESTIONS = 64  # of a request; facts to rate likewise
MAX_TOP = 1000  # answers of a question
MAX_NAME = 1000  # letters
MAX_ARITY = 64
Name = Annotated[str, Field(max_length=MAX_NAME)]
NameList = Annotated[list[Name], Field(max_length=MAX_ARITY)]


class Body(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid")


class QuestionBody(Body):
    """A relation and its entities, in order or by role; ``?`` marks what to predict."""

    relation: Name
    entities: NameList | Annotated[dict[Name, Name | NameList], Field(max_length=MAX_ARITY)]


QuestionList = Annotated[list[QuestionBody], Field(min_length=1, max_length=MAX_QUESTIONS)]


class PredictRequest(Body):
    """Questions, and how to answer them."""

    questions: QuestionList
    top: Annotated[int, Field(ge=1, le=MAX_TOP)] = 10
    include_known: bool = False
    why: bool = False


class PredictResponse(Body):
    """The answers of each question, in the order of the request."""

    answered: list[AnsweredRecord]


class WhyRequest(QuestionBody):
    """A question, and an answer to it: an entity for each open position."""

    names: Annotated[list[Name], Field(min_length=1, max_length=MAX_ARITY)]


class WhyResponse(Body):
    """What supports each entity of the answer."""

    why: list[ExplanationRecord]


class ScoreRequest(Body):
    """Facts to rate."""

    facts: QuestionList


class ScoreResponse(Body):
    """The ratings of facts, in the order of the request."""

    facts: list[RatingRecord]


class RelationInfo(Body):
    """A relation, its roles, and the number of its facts."""

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
    """What is wrong with a request."""

    detail: str

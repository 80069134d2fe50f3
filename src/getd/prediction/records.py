"""The JSON form of answers, ratings and explanations: one for ``--json``, HTTP and files.

``RatingRecord.model_validate(rating)`` is the record of a rating, and so for explanations.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation
from getd.prediction.question import Question


class Record(BaseModel):
    """The base of all records, made from what they describe; a key may be missing."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return self.model_dump(exclude_unset=True)


class ReasonRecord(Record):
    """A training fact that supports an answer."""

    fact: list[str]
    pull: float


class ExplanationRecord(Record):
    """What supports an entity of an answer."""

    facts: list[ReasonRecord]
    similar: list[str]


class AnswerRecord(Record):
    """An answer: an ``entity``, ``entities`` if several positions are open, or a ``relation``."""

    entity: str | None = None
    entities: list[str] | None = None
    relation: str | None = None
    score: float
    probability: float | None
    confidence: float | None
    known: bool
    why: list[ExplanationRecord] | None = None


class AnsweredRecord(Record):
    """A question and its answers."""

    question: list[str]
    answers: list[AnswerRecord]


class RatingRecord(Record):
    """What a run thinks of a fact."""

    fact: list[str]
    plausibility: float
    fit: float
    confidence: float | None
    ranks: list[float]
    known: bool


def answered_record(
    question: Question,
    answers: Sequence[Answer],
    explanations: Sequence[Sequence[Explanation]] = (),
) -> AnsweredRecord:
    """Return the record of a question; ``explanations`` are those of the first answers."""
    return AnsweredRecord(**answered_values(question, answers, explanations))


def answered_values(
    question: Question,
    answers: Sequence[Answer],
    explanations: Sequence[Sequence[Explanation]] = (),
) -> dict[str, Any]:
    """Return what the record of a question holds, ready for JSON; a record would check it."""
    is_joint = len(question.open) > 1
    key = "entities" if is_joint else "entity" if question.open else "relation"
    records: list[dict[str, Any]] = []
    for names, score, probability, confidence, known in answers:
        records.append(
            {
                key: names if is_joint else names[0],
                "score": score,
                "probability": probability,
                "confidence": confidence,
                "known": known,
            }
        )

    for record, explained in zip(records, explanations, strict=False):
        if explained:
            whys = [ExplanationRecord.model_validate(each) for each in explained]
            record["why"] = [why.as_dict() for why in whys]
    return {"question": question.text, "answers": records}

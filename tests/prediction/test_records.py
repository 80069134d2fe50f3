"""The JSON form of answers, ratings and explanations."""

from __future__ import annotations

from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation, Reason
from getd.prediction.question import parse_question
from getd.prediction.rate import Rating
from getd.prediction.records import RatingRecord, answered_record

KB = KnowledgeBase.from_facts({"train": [("r", "a", "b", "c"), ("s", "a", "b")]})
NUMBERS = {"score": 1.5, "probability": None, "confidence": 0.25, "known": True}


def answer(*names: str) -> Answer:
    return Answer(names, 1.5, None, 0.25, True)


def test_an_answer_is_an_entity_several_or_a_relation() -> None:
    one = parse_question(KB, "r", ["a", "?", "c"])
    two = parse_question(KB, "r", ["?", "b", "?"])
    relation = parse_question(KB, "?", ["a", "b"])
    assert answered_record(one, [answer("b")]).answers[0].as_dict() == {"entity": "b", **NUMBERS}
    assert answered_record(two, [answer("a", "c")]).answers[0].as_dict() == {
        "entities": ["a", "c"],
        **NUMBERS,
    }
    assert answered_record(relation, [answer("s")]).answers[0].as_dict() == {
        "relation": "s",
        **NUMBERS,
    }


def test_reasons_are_there_only_where_they_were_given() -> None:
    question = parse_question(KB, "s", ["?", "b"])
    why = [Explanation((Reason(("s", "a", "b"), 0.5),), ("c",))]
    record = answered_record(question, [answer("a"), answer("c")], [why]).as_dict()
    assert record["question"] == ["s", "?", "b"]
    explained, plain = record["answers"]
    assert explained["why"] == [
        {"facts": [{"fact": ["s", "a", "b"], "pull": 0.5}], "similar": ["c"]}
    ]
    assert plain == {"entity": "c", **NUMBERS}


def test_a_rating_has_all_its_numbers() -> None:
    rating = Rating(("s", "a", "b"), -1.5, 0.75, None, (1.0, 2.5), False)
    assert RatingRecord.model_validate(rating).as_dict() == {
        "fact": ["s", "a", "b"],
        "plausibility": -1.5,
        "fit": 0.75,
        "confidence": None,
        "ranks": [1.0, 2.5],
        "known": False,
    }

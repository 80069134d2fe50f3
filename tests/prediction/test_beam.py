"""Several holes at once: the best fillings are those of an exhaustive search."""

from __future__ import annotations

from itertools import product

import pytest

from getd.prediction import beam
from getd.prediction.beam import answer_jointly
from getd.prediction.predictor import Predictor
from getd.prediction.question import parse_question
from getd.run import Run
from getd.runs.opened import OpenedRun
from tests.prediction.named_facts import every_fact, rate


@pytest.mark.parametrize(  # 0: the beam, which need not find the best three of 729
    ("names", "exhaustive_limit"),
    [(["?", "?", "e4"], 0), (["?", "e2", "?"], 0), (["?", "?", "e4"], 100), (["?"] * 3, 1000)],
)
def test_several_holes_equal_exhaustive_search(
    calibrated: Run, names: list[str], exhaustive_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam, "EXHAUSTIVE_LIMIT", exhaustive_limit)
    question = parse_question(calibrated.kb, "s", names)
    every = []
    for entities in product(calibrated.kb.entities, repeat=len(question.open)):
        filled = list(names)
        for position, entity in zip(question.open, entities, strict=True):
            filled[position] = entity
        every.append(filled)
    ratings = rate(calibrated, "s", every)
    best = sorted((rating.confidence or 0 for rating in ratings if not rating.known), reverse=True)

    answerer = calibrated.predictor.answerer
    answers = answer_jointly(answerer, question, top=5)
    assert [answer.confidence for answer in answers] == pytest.approx(best[:5], abs=1e-6)
    assert len({answer.confidence for answer in answers}) > 1
    assert all(answer.probability is None and not answer.known for answer in answers)

    bare = OpenedRun(calibrated.folder, calibrated.kb, calibrated.model)  # not calibrated
    plain = Predictor(bare).answerer
    answers = answer_jointly(plain, question, top=5)
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)


def test_known_facts_are_no_answers_of_several_holes_unless_asked_for(
    small: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = parse_question(small.kb, "s", ["?", "?", "e4"])
    known = {fact[1:3] for fact in every_fact(small.kb) if fact[0] == "s" and fact[3] == "e4"}
    assert known
    answerer = small.predictor.answerer
    for limit in (0, 100):
        monkeypatch.setattr(beam, "EXHAUSTIVE_LIMIT", limit)
        answers = answer_jointly(answerer, question, 81)
        assert not known & {answer.names for answer in answers}
    both = answer_jointly(answerer, question, 81, include_known=True)
    assert {answer.names for answer in both if answer.known} == known
    assert len(both) == 81 == len(answers) + len(known)


def test_more_holes_find_no_less(demo_run: Run) -> None:
    two, three = (
        demo_run.predict("plays for", ["?", "?", season], top=1)[0] for season in ("2016-17", "?")
    )
    assert (three.confidence or 0) >= (two.confidence or 1) - 1e-9

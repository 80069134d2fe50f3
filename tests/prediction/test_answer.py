"""What predict ranks is what evaluate ranks; probabilities and confidence are what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from getd.calibration.calibrate import Calibration
from getd.evaluation.ranks import rank_facts
from getd.prediction.answer import Answer, Answers
from getd.run import Run
from getd.runs.opened import OpenedRun
from tests.prediction.named_facts import rate


def test_what_predict_ranks_is_what_evaluate_ranks(quick_run: Run) -> None:
    run = quick_run
    for arity, facts in run.kb.split("test").items():
        sample = facts.take(slice(0, 12))
        ranks = rank_facts(run.model, sample, run.predictor.known).rank
        for row, fact in enumerate(run.kb.decode(sample)):
            for position in range(arity):
                relation, *entities = fact
                right = entities[position]
                entities[position] = "?"
                answers = run.predict(relation, entities, top=run.kb.n_entities, include_known=True)
                rivals = [a for a in answers if not a.known or a.name == right]
                score = next(a.score for a in rivals if a.name == right)
                above = sum(a.score > score for a in rivals)
                level = sum(a.score == score for a in rivals) - 1
                assert 1 + above + level / 2 == ranks[row, position]


def test_as_many_questions_are_scored_together_as_the_budget_allows(
    quick_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quick_run
    monkeypatch.setattr("getd.prediction.answer.SCORE_BUDGET", 3 * run.kb.n_entities + 1)
    facts = run.kb.decode(run.kb.split("test")[3].take(slice(0, 7)))
    questions = [run.question(relation, ["?", *others]) for relation, _, *others in facts]
    batches = [len(numbers) for numbers, _, _ in run.predictor.answerer._batches(questions)]
    assert batches == [3, 3, 1]

    alone = [run.answer([question], top=3)[0] for question in questions]
    together = run.answer(questions, top=3)
    assert [[a.name for a in each] for each in together] == [[a.name for a in e] for e in alone]


def test_relations_of_the_same_arity_are_ranked_by_the_scores_of_the_model(quick_run: Run) -> None:
    run = quick_run
    facts = run.kb.split("test")[4].take(slice(0, 10))
    for fact in run.kb.decode(facts):
        answers = run.predict("?", list(fact[1:]), top=20, include_known=True)
        # Relations of another arity are no answers.
        assert {a.name for a in answers} == {"award", "fixture", "transfer"}
        scores = run.model.score_relations(torch.tensor(run.kb.entities.ids(fact[1:]))[None])[0]
        ids = run.kb.relations.ids([a.name for a in answers])
        assert [a.score for a in answers] == pytest.approx(scores[torch.tensor(ids)].tolist())
        assert (np.diff([a.score for a in answers]) <= 0).all()
        assert next(a.known for a in answers if a.name == fact[0])


def test_known_answers_are_left_out_or_marked(quick_run: Run) -> None:
    run = quick_run
    relation, *entities = run.kb.decode(run.kb.split("train")[3])[0]
    right = entities[1]
    entities[1] = "?"
    without = run.predict(relation, entities, top=300)
    marked = run.predict(relation, entities, top=300, include_known=True)
    assert right not in [answer.name for answer in without]
    assert [answer.known for answer in marked if answer.name == right] == [True]
    assert len(marked) == run.kb.n_entities
    assert sum(answer.probability for answer in marked) == pytest.approx(1)
    scores = [answer.score for answer in marked]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_probabilities_are_a_softmax_of_scores_over_the_temperature(
    small: Run, temperature: float
) -> None:
    calibration = Calibration(temperature={"3": temperature})
    run = Run(OpenedRun(small.folder, small.kb, small.model, calibration))
    for include_known in (False, True):
        answers = run.predict("s", ["e1", "?", "e4"], top=9, include_known=include_known)
        weights = [np.exp(answer.score / temperature) for answer in answers]
        assert len(answers) == 9 - (not include_known)
        expected = [weight / sum(weights) for weight in weights]
        assert [answer.probability for answer in answers] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("include_known", [False, True])
def test_the_confidence_of_an_answer_is_that_of_the_fact_it_makes(
    calibrated: Run, include_known: bool
) -> None:
    answers = calibrated.predict("s", ["e1", "?", "e4"], top=9, include_known=include_known)
    ratings = rate(calibrated, "s", [["e1", answer.name, "e4"] for answer in answers])
    expected = [rating.confidence for rating in ratings]
    assert [answer.confidence for answer in answers] == pytest.approx(expected, rel=1e-4)


def test_answers_are_a_list_that_shows_itself_as_a_table() -> None:
    first = Answer(("<b>Ada\x1b</b>",), 2.5, 0.75, None, False)
    second = Answer(("Ben",), -1.0, 0.25, None, True)
    answers = Answers([first, second])
    assert answers == [first, second]
    assert answers[0] is first
    assert [*answers, first] == [first, second, first]
    header, _, *rows = repr(answers).splitlines()[1:-1]
    assert header.strip("│").split("┆") == [
        " answer         ",
        " probability ",
        " score ",
        " known ",
    ]
    assert [row.split()[1] for row in rows] == ["<b>Ada\\x1b</b>", "Ben"]
    html = answers._repr_html_()
    assert "&lt;b&gt;Ada\\x1b&lt;/b&gt;" in html
    assert "<td>0.75</td><td>2.5</td><td>false</td>" in html
    assert "answer" in repr(Answers())


def test_answers_of_several_holes_show_no_probability() -> None:
    answers = Answers([Answer(("Ada", "Oxbow"), -2.0, None, 0.5, False)])
    assert "probability" not in repr(answers)
    assert "Ada, Oxbow" in repr(answers)
    many = Answers([Answer((f"e{i}",), 0.0, 0.5, None, False) for i in range(50)])
    assert all(f"e{i}" in repr(many) for i in range(50))

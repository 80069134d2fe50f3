"""Answers, their probabilities and their confidence are those of the slow and obvious way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from getd.calibration.calibrate import Calibration
from getd.calibration.confidence import Confidence
from getd.evaluation.rounding import score_rounding
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ModelSizes, ScoringModel
from getd.models.ensemble import combine_members, slot_names
from getd.models.registry import make_model, model_settings
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from tests.prediction.reference_answers import slow_answers

ARITIES = (2, 3, 4, 5)
MODELS: dict[str, dict[str, object]] = {  # one table, a table for each position, no dot product
    "getd": {"entity_dim": 5, "ring_ranks": 3, "initial_scale": 1.0},
    "n-cp": {"entity_dim": 5, "initial_scale": 1.0},
    "nalp": {"entity_dim": 5},
}
COMBINED = ("getd", "n-cp")  # the members of an ensemble


def random_kb() -> KnowledgeBase:
    """Two relations of each arity over twelve entities; many questions have several answers."""
    rng = np.random.default_rng(0)
    facts = []
    for arity in ARITIES:
        for number in range(40):
            entities = rng.integers(0, [3] * (arity - 1) + [12])
            facts.append((f"r{arity}{number % 2}", *(f"e{entity}" for entity in entities)))
    facts += [("r20", f"e{entity}", "e0") for entity in range(12)]
    return KnowledgeBase.from_facts({"train": facts[::2], "valid": facts[1::2]})


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return random_kb()


def model_of(kb: KnowledgeBase, name: str) -> ScoringModel:
    if name == "combined":
        weights = {}
        for row, slot in enumerate(slot_names(kb.arities)):
            weights[slot] = [0.5 + row % 3, 1.5 - row % 2]
        return combine_members([model_of(kb, member) for member in COMBINED], weights)
    sizes = ModelSizes(kb.n_entities, kb.n_relations, kb.arities)
    generator = torch.Generator().manual_seed(0)
    return make_model(name, model_settings(name, MODELS[name]), sizes, generator)


def run_of(kb: KnowledgeBase, name: str, memory: bool, calibrated: bool) -> Run:
    model = model_of(kb, name)
    if memory:
        counts = Memory.from_facts(kb.split("train"), kb.n_entities)
        weights = {}
        for arity in ARITIES:
            for position in range(arity):
                sources = counts.sources(arity, position)[position:]
                source_weights = SourceWeights(share=1.0 + position, log_share=-0.1)
                weights[f"{arity}-{position}"] = MemoryWeights(
                    scale=1.3, sources=dict.fromkeys(sources, source_weights)
                )
        model = WithMemory(model, counts, weights)

    calibration = Calibration()
    if calibrated:
        curve = Confidence(slope=0.7, fit_slope=0.4, intercept=2.0)
        calibration = Calibration(
            temperature=dict.fromkeys(map(str, ARITIES), 0.6),
            confidence=dict.fromkeys(map(str, ARITIES), curve),
        )
    return Run(OpenedRun(RunFolder(Path("nowhere")), kb, model.eval(), calibration))


@pytest.mark.parametrize("include_known", [False, True])
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("name", [*MODELS, "combined"])
@pytest.mark.parametrize("arity", ARITIES)
def test_answers_equal_those_of_the_slow_way(
    kb: KnowledgeBase, arity: int, name: str, memory: bool, calibrated: bool, include_known: bool
) -> None:
    run = run_of(kb, name, memory, calibrated)
    questions = []
    expectations = []
    for position, fact in enumerate(kb.decode(kb.split("valid")[arity])[:3]):
        position %= arity
        names = [*fact[1:]]
        names[position] = "?"
        questions.append(run.question(fact[0], names))
        answers = slow_answers(run.predictor.answerer, fact, position, include_known)
        expectations.append(answers)

    for top in (4, 99):
        answered = run.answer(questions, top, include_known)
        for expected, answers in zip(expectations, answered, strict=True):
            assert len(answers) == min(top, len(expected))
            for answer in answers:
                score, probability, confidence, known = expected[answer.name]
                assert answer.score == pytest.approx(score, abs=1e-5)
                assert answer.probability == pytest.approx(probability, abs=1e-5)
                assert answer.confidence == pytest.approx(confidence, abs=1e-5)
                assert answer.known == known

            # Nothing that is left out, or comes later, is better by more than rounding.
            best = sorted((value[0] for value in expected.values()), reverse=True)
            slack = float(score_rounding(torch.tensor([best])))
            scores = [expected[answer.name][0] for answer in answers]
            assert scores == pytest.approx(best[: len(answers)], abs=slack)


def test_a_question_whose_answers_are_all_known_has_none(kb: KnowledgeBase) -> None:
    run = run_of(kb, "getd", memory=False, calibrated=True)
    assert run.predict("r20", ["?", "e0"]) == []
    everyone = run.predict("r20", ["?", "e0"], top=99, include_known=True)
    assert all(answer.known for answer in everyone)
    expected = slow_answers(run.predictor.answerer, ("r20", "?", "e0"), 0, include_known=True)
    for answer in everyone:
        assert answer.probability == pytest.approx(expected[answer.name][1], abs=1e-5)
        assert answer.confidence == pytest.approx(expected[answer.name][2], abs=1e-5)


@pytest.mark.parametrize("max_filled", [1, 7, 20])
def test_answers_do_not_depend_on_how_many_questions_are_filled_together(
    kb: KnowledgeBase, max_filled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(kb, "getd", memory=True, calibrated=True)
    questions = [
        run.question(fact[0], ["?", *fact[2:]]) for fact in kb.decode(kb.split("valid")[3])
    ]
    expected = run.answer(questions, top=3)
    monkeypatch.setattr("getd.prediction.answer.MAX_FILLED", max_filled)
    for answers, wanted in zip(run.answer(questions, top=3), expected, strict=True):
        assert [answer.name for answer in answers] == [answer.name for answer in wanted]
        for answer, other in zip(answers, wanted, strict=True):
            assert answer.confidence == pytest.approx(other.confidence, abs=1e-5)


def test_equal_scores_are_answered_in_the_order_of_their_names(kb: KnowledgeBase) -> None:
    run = run_of(kb, "n-cp", memory=False, calibrated=False)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.zero_()
    answers = run.predict("r21", ["e0", "?"], top=5, include_known=True)
    assert [answer.name for answer in answers] == list(kb.entities)[:5]

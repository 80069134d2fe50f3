"""Several holes, reasons, ratings, missing facts: what is done with a run."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import getd
from experiments.using import demo_rules
from getd.api import open_run
from getd.calibration.calibrate import Calibration
from getd.calibration.confidence import Confidence
from getd.errors import FactError, RunError
from getd.evaluation.ranks import rank_facts
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.beam import answer_jointly
from getd.prediction.complete import CompletionRequest, complete
from getd.prediction.predictor import Predictor
from getd.prediction.question import parse_question
from getd.prediction.questions import read_facts
from getd.prediction.rate import Rating
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.workflows.demo import train_demo


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(train_demo(tmp_path_factory.mktemp("use") / "demo"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two relations over nine names."""
    facts = [("r", f"e{i}", f"e{(i + 1) % 9}", f"e{(i * i) % 9}") for i in range(9)]
    facts += [("s", f"e{i}", f"e{(2 * i) % 9}", f"e{j}") for i in range(9) for j in (1, 4)]
    kb = KnowledgeBase.from_facts({"train": facts[:20], "valid": facts[20:24], "test": facts[24:]})
    config = {"model": {"entity_dim": 6, "ring_ranks": 3}, "training": {"epochs": 4, "threads": 1}}
    return getd.train(kb, out=tmp_path_factory.mktemp("small") / "run", config=config)


@pytest.mark.parametrize(  # 0: the beam, which need not find the best three of 729
    ("asked", "all_below"),
    [(["?", "?", "e4"], 0), (["?", "e2", "?"], 0), (["?", "?", "e4"], 100), (["?"] * 3, 1000)],
)
def test_several_holes_equal_exhaustive_search(
    small: Run, asked: list[str], all_below: int
) -> None:
    curve = Confidence(slope=1.5, fit_slope=0.5, intercept=3.0)
    small = Run(
        OpenedRun(
            small.folder,
            small.kb,
            small.model,
            Calibration(temperature={"3": 0.8}, confidence={"3": curve}),
        )
    )
    question = parse_question(small.kb, "s", asked)
    every = []
    for names in product(small.kb.entities, repeat=len(question.open)):
        filled = list(asked)
        for position, name in zip(question.open, names, strict=True):
            filled[position] = name
        every.append(filled)
    facts = {
        tuple(filled): rating
        for filled, rating in zip(every, _rate(small, "s", every), strict=True)
    }
    best = sorted((r.confidence or 0 for r in facts.values() if not r.known), reverse=True)[:5]
    answers = answer_jointly(small.predictor.answerer, question, top=5, all_below=all_below)
    assert [answer.confidence for answer in answers] == pytest.approx(best, abs=1e-6)
    assert len({answer.confidence for answer in answers}) > 1
    plain = Predictor(OpenedRun(small.folder, small.kb, small.model)).answerer  # not calibrated
    scores = [
        answer.score for answer in answer_jointly(plain, question, top=5, all_below=all_below)
    ]
    assert scores == sorted(scores, reverse=True)
    assert all(answer.probability is None and not answer.known for answer in answers)


def test_known_facts_are_no_answers_of_several_holes_unless_asked_for(small: Run) -> None:
    question = parse_question(small.kb, "s", ["?", "?", "e4"])
    known = {fact[1:3] for fact in _every_fact(small.kb) if fact[0] == "s" and fact[3] == "e4"}
    assert known
    for all_below in (0, 100):
        answers = answer_jointly(small.predictor.answerer, question, 81, all_below=all_below)
        assert not known & {answer.names for answer in answers}
    both = answer_jointly(small.predictor.answerer, question, 81, include_known=True, all_below=100)
    assert {answer.names for answer in both if answer.known} == known
    assert len(both) == 81 == len(answers) + len(known)


def _every_fact(kb: KnowledgeBase) -> list[tuple[str, ...]]:
    return [
        fact
        for blocks in kb.splits.values()
        for block in blocks.values()
        for fact in kb.decode(block)
    ]


def test_a_fact_is_no_reason_for_itself(small: Run) -> None:
    (facts,) = small.kb.split("train").values()
    for row in range(4):
        fact = facts.take(slice(row, row + 1))
        for why in small.predictor.explain_fact(fact, range(3), top=100):
            assert why.facts
            assert small.kb.decode(fact)[0] not in {reason.fact for reason in why.facts}


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_probabilities_are_a_softmax_of_scores_over_the_temperature(
    small: Run, temperature: float
) -> None:
    run = Run(
        OpenedRun(small.folder, small.kb, small.model, Calibration(temperature={"3": temperature}))
    )
    for include_known in (False, True):
        answers = run.predict("s", ["e1", "?", "e4"], top=9, include_known=include_known)
        weights = [np.exp(answer.score / temperature) for answer in answers]
        assert len(answers) == 9 - (not include_known)
        wanted = [weight / sum(weights) for weight in weights]
        assert [answer.probability for answer in answers] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("include_known", [False, True])
def test_the_confidence_of_an_answer_is_that_of_the_fact_it_makes(
    small: Run, include_known: bool
) -> None:
    curve = Confidence(slope=1.5, fit_slope=0.5, intercept=3.0)
    run = Run(
        OpenedRun(
            small.folder,
            small.kb,
            small.model,
            Calibration(temperature={"3": 0.8}, confidence={"3": curve}),
        )
    )
    answers = run.predict("s", ["e1", "?", "e4"], top=9, include_known=include_known)
    rated = _rate(run, "s", [["e1", answer.name, "e4"] for answer in answers])
    assert [answer.confidence for answer in answers] == pytest.approx(
        [r.confidence for r in rated], rel=1e-4
    )


@pytest.mark.parametrize(
    "name",
    [
        "config.toml",
        "weights.safetensors",
        "entities.txt",
        "facts.parquet",
        "memory.json",
        "calibration.json",
    ],
)
def test_a_run_that_was_changed_has_another_fingerprint(
    small: Run, name: str, tmp_path: Path
) -> None:
    shutil.copytree(small.path, tmp_path / "copy")
    copy = OpenedRun(RunFolder(tmp_path / "copy"), small.kb, small.model)
    before = copy.fingerprint()
    assert before == small.opened.fingerprint()
    path = tmp_path / "copy" / name
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b" ")
    assert copy.fingerprint() != before


def test_more_holes_find_no_less(demo_run: Run) -> None:
    two, three = (
        demo_run.predict("plays for", ["?", "?", season], top=1)[0] for season in ("2016-17", "?")
    )
    assert (three.confidence or 0) >= (two.confidence or 1) - 1e-9


def _rate(run: Run, relation: str, facts: list[list[str]]) -> list[Rating]:
    ids = np.array([run.kb.entities.ids(fact) for fact in facts])
    return run.predictor.rate(Facts(np.full(len(facts), run.kb.relations.id(relation)), ids))


def test_the_demo_s_reasons_are_facts_of_its_rules(demo_run: Run) -> None:
    kb, found = demo_run.kb, []
    follows = demo_rules(kb)
    for facts in kb.split("test").values():
        some = facts.take(slice(0, 25))
        ranks = rank_facts(demo_run.model, some, demo_run.predictor.known).rank
        for row, position in np.argwhere(ranks == 1).tolist():
            fact = some.take(slice(row, row + 1))
            (why,) = demo_run.predictor.explain_fact(fact, [position])
            found.append(any(follows(kb.decode(fact)[0], reason.fact) for reason in why.facts))
            assert 0 < sum(reason.pull for reason in why.facts) <= 1 + 1e-9
    assert len(found) > 150
    assert sum(found) / len(found) >= 0.8


def test_replaced_entities_are_suspicious(tmp_path: Path) -> None:
    kb, rng = getd.load("demo"), np.random.default_rng(0)
    wrong, splits = set(), {split: [] for split in kb.splits}
    every = {
        fact
        for blocks in kb.splits.values()
        for block in blocks.values()
        for fact in kb.decode(block)
    }
    for split, blocks in kb.splits.items():
        for block in blocks.values():
            splits[split] += kb.decode(block)
    for row in rng.choice(len(splits["train"]), 40, replace=False).tolist():
        fact = list(splits["train"][row])
        fact[int(rng.integers(1, len(fact)))] = kb.entities[int(rng.integers(kb.n_entities))]
        if tuple(fact) not in every:
            splits["train"][row] = tuple(fact)
            wrong.add(tuple(fact))
    config = {
        "model": {"entity_dim": 16, "ring_ranks": 8},
        "training": {"epochs": 8, "learning_rate": 0.02},
    }
    run = getd.train(KnowledgeBase.from_facts(splits), out=tmp_path / "run", config=config)
    found = [rating.fact for rating in run.suspicious(2 * len(wrong))]
    names = {(label.split("(")[0], *entities) for label, *entities in found}
    assert len(names & wrong) / len(wrong) >= 0.6


def test_missing_facts_are_written_in_every_form_and_gone_on_with(
    demo_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = CompletionRequest(
        "demo", demo_run.kb.relations.id("plays for"), top=20, min_confidence=0.1
    )
    monkeypatch.setattr("getd.prediction.complete.AT_ONCE", 100)
    whole = tmp_path / "whole.tsv"
    number = complete(demo_run.predictor.answerer, asked, whole)
    rows = [line.split("\t") for line in whole.read_text().splitlines()]
    assert len(rows) == number <= 20
    confidence = [float(row[-2]) for row in rows]
    assert confidence == sorted(confidence, reverse=True)
    assert confidence[-1] >= 0.1
    known = {
        fact
        for blocks in demo_run.kb.splits.values()
        for block in blocks.values()
        for fact in demo_run.kb.decode(block)
    }
    assert not known & {tuple(row[:-2]) for row in rows}

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    parquet = tmp_path / "facts.parquet"
    with pytest.raises(KeyboardInterrupt):
        complete(demo_run.predictor.answerer, asked, parquet, stop)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".partial"] == [
        "facts.parquet.partial"
    ]
    with pytest.raises(RunError, match="begun with another run or other settings"):
        complete(
            demo_run.predictor.answerer, CompletionRequest("demo", asked.relation, 5, 0.1), parquet
        )
    complete(demo_run.predictor.answerer, asked, parquet)
    frame = pl.read_parquet(parquet)
    assert frame.columns == ["relation", "player", "club", "season", "confidence", "plausibility"]
    assert [list(row) for row in frame.select(frame.columns[:4]).iter_rows()] == [
        row[:4] for row in rows
    ]
    lines = tmp_path / "facts.jsonl"
    complete(demo_run.predictor.answerer, asked, lines)
    assert [json.loads(line)["entities"] for line in lines.read_text().splitlines()] == [
        row[1:4] for row in rows
    ]
    assert not list(tmp_path.glob("*.partial"))


def test_a_run_s_calibration_is_opened_with_it(demo_run: Run) -> None:
    again = open_run(demo_run.path)
    assert again.calibration == demo_run.calibration
    answers = again.predict("award", ["?", "Oxbow United", "Golden Boot", "2016-17"], top=300)
    assert sum(answer.probability or 0 for answer in answers) == pytest.approx(1)
    assert all(answer.confidence is not None for answer in answers)
    (again.path / "calibration.json").write_text('{"temperature": {"4": -1}, "confidence": {}}')
    with pytest.raises(
        RunError, match=r"calibration.json: expected a calibration, found another thing"
    ):
        open_run(again.path)
    demo_run.calibrate()


def test_a_role_that_stands_twice(tmp_path: Path) -> None:
    """Qualifiers of one name have several values; by role, they are given as a list."""
    rows = [f"p{i},member of,club{i % 3},with,p{(i + 1) % 8},with,p{(i + 2) % 8}" for i in range(8)]
    (tmp_path / "facts.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    kb = getd.load(tmp_path / "facts.csv", format="hyper-csv")
    asked = {"subject": "p0", "object": "?", "with": ["p1", "p2"]}
    question = parse_question(kb, "member of", asked)
    assert question.text == ("member of", "p0", "?", "p1", "p2")
    with pytest.raises(
        FactError, match=r"has the roles subject, object, with, with, found subject, object, with$"
    ):
        parse_question(kb, "member of", {**asked, "with": "p1"})
    _, blocks = read_facts(tmp_path / "facts.csv", kb)
    wanted = join(*kb.splits.values())[4]
    assert sorted(kb.decode(blocks[4])) == sorted(kb.decode(wanted))

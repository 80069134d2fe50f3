"""What predict ranks is what evaluate ranks, and questions are understood or answered with the nearest name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import getd
from getd.api import open_run
from getd.errors import FactError, FactFileError, RunError
from getd.evaluation.ranks import rank_facts, rank_relations
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.question import parse_question
from getd.prediction.questions import read_questions
from getd.run import Run
from getd.runs.folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = {
        "model": {"entity_dim": 8, "ring_ranks": 4},
        "training": {"epochs": 3, "learning_rate": 0.02, "threads": 1},
    }
    return getd.train(getd.load("demo"), out=tmp_path_factory.mktemp("run") / "demo", config=config)


def test_what_predict_ranks_is_what_evaluate_ranks(run: Run) -> None:
    for arity, facts in run.kb.split("test").items():
        some = facts.take(slice(0, 12))
        ranks = rank_facts(run.model, some, run.predictor.known).rank
        for row, fact in enumerate(run.kb.decode(some)):
            for position in range(arity):
                relation, *entities = fact
                right, entities[position] = entities[position], "?"
                answers = run.predict(relation, entities, top=run.kb.n_entities, include_known=True)
                rivals = [a for a in answers if not a.known or a.name == right]
                score = next(a.score for a in rivals if a.name == right)
                above, level = (
                    sum(a.score > score for a in rivals),
                    sum(a.score == score for a in rivals) - 1,
                )
                assert 1 + above + level / 2 == ranks[row, position]


def test_relations_are_ranked_as_evaluate_ranks_them(run: Run) -> None:
    facts = run.kb.split("test")[4].take(slice(0, 10))
    known = run.predictor.known
    ranks = rank_relations(run.model, facts, known).rank[:, 0]
    for fact, rank in zip(run.kb.decode(facts), ranks, strict=True):
        answers = run.predict("?", list(fact[1:]), top=20, include_known=True)
        assert {a.name for a in answers} == {
            "award",
            "fixture",
            "transfer",
        }  # relations of another arity are no answers
        scores = run.model.score_relations(torch.tensor(run.kb.entities.ids(fact[1:]))[None])[0]
        right = run.kb.relations.id(fact[0])
        rivals = [
            r for r in range(run.kb.n_relations) if r != right
        ]  # evaluation ranks among all relations
        assert 1 + sum(bool(scores[r] > scores[right]) for r in rivals) == rank
        assert next(a.score for a in answers if a.name == fact[0]) == pytest.approx(
            scores[right].item()
        )


def test_known_answers_are_left_out_or_marked(run: Run) -> None:
    relation, *entities = run.kb.decode(run.kb.split("train")[3])[0]
    entities[1], right = "?", entities[1]
    without = run.predict(relation, entities, top=300)
    marked = run.predict(relation, entities, top=300, include_known=True)
    assert right not in [answer.name for answer in without]
    assert [answer.known for answer in marked if answer.name == right] == [True]
    assert len(marked) == run.kb.n_entities
    assert sum(answer.probability for answer in marked) == pytest.approx(1)
    assert [answer.score for answer in marked] == sorted(
        (answer.score for answer in marked), reverse=True
    )


def test_questions_by_role_are_questions_by_position(run: Run) -> None:
    by_role = run.predict(
        "transfer", {"season": "2016-17", "to": "?", "player": "Ada Hale", "from": "Oxbow United"}
    )
    by_position = run.predict("transfer", ["Ada Hale", "Oxbow United", "?", "2016-17"])
    assert by_role == by_position


@pytest.mark.parametrize(
    ("relation", "entities", "message"),
    [
        ("trasfer", ["?", "a", "b", "c"], "unknown relation 'trasfer'; did you mean 'transfer'?"),
        ("transfer", ["?", "a"], "relation 'transfer' has 4 entities, found 2"),
        ("born in", ["Ada Hal", "?"], "unknown entity 'Ada Hal'; did you mean 'Ada Hale'?"),
        ("award", ["?"] * 4, "expected 3 '?' at most in a question, found 4 in award ? ? ? ?"),
        (
            "born in",
            ["Ada Hale", "Oxbow"],
            "expected a '?' in a question, found none in born in Ada Hale Oxbow",
        ),
        ("?", ["Oxbow"], "expected 2 or 3 or 4 entities, as relations have here, found 1"),
        (
            "?",
            ["?", "Oxbow"],
            "expected '?' for the relation or for entities, found both in ? ? Oxbow",
        ),
        (
            "born in",
            {"playr": "?", "city": "Oxbow"},
            "relation 'born in' has the roles player, city, found playr, city; did you mean 'player'?",
        ),
        ("bornin", {"player": "?"}, "unknown relation 'bornin'; did you mean 'born in'?"),
    ],
)
def test_questions_that_cannot_be_understood(
    run: Run, relation: str, entities: list[str], message: str
) -> None:
    with pytest.raises(FactError) as caught:
        run.predict(relation, entities)
    assert str(caught.value) == message


def test_a_name_of_several_relations_is_told_apart_by_arity_or_asked_for() -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("r", "a", "b", "c")]})
    assert parse_question(kb, "r", ["a", "?"]).fact.relation.tolist() == [
        kb.relations.id("r(e1, e2)")
    ]
    assert parse_question(kb, "r(e1, e2, e3)", ["a", "?", "c"]).position == 1
    assert parse_question(kb, "?", ["a", "b", "c"]).position is None
    with pytest.raises(FactError, match=r"^relation 'r' has 2 or 3 entities, found 4$"):
        parse_question(kb, "r", ["a", "?", "c", "a"])


def test_questions_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(
        "born in\tAda Hale\t?\ntransfer\tAda Hale\t?\tOxbow United\t2016-17\n?\tAda Hale\tOxbow\n"
    )
    assert [question.position for question in read_questions(path, run.kb)] == [1, 1, None]
    path.write_text("born in\tAda Hal\t?\nborn in\tAda Hale\tOxbow\n")
    with pytest.raises(FactFileError) as caught:
        read_questions(path, run.kb)
    assert (
        str(caught.value).splitlines()[0]
        == f"{path}:1: unknown entity 'Ada Hal'; did you mean 'Ada Hale'? (2 bad lines)"
    )


def test_a_run_reads_back_what_was_written(run: Run) -> None:
    again = open_run(run.path)
    assert again.kb.entities == run.kb.entities
    assert again.kb.signatures == run.kb.signatures
    for split, blocks in run.kb.splits.items():
        assert {n: facts.rows().tolist() for n, facts in again.kb.splits[split].items()} == {
            n: facts.rows().tolist() for n, facts in blocks.items()
        }
    files = {path.name for path in run.path.iterdir()}
    assert files >= {
        "config.toml",
        "model.json",
        "weights.safetensors",
        "entities.txt",
        "relations.txt",
        "roles.json",
    }
    assert files >= {
        "facts.parquet",
        "history.jsonl",
        "report.json",
        "environment.json",
        "checkpoint",
    }


def test_a_history_with_a_torn_last_line_is_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.append_history({"epoch": 1, "loss": 2.5, "seconds": 1})
    folder.append_history({"epoch": 2, "loss": 1.5, "seconds": 1})
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert [line.epoch for line in folder.read_history()] == [1, 2]
    folder.cut_history(1)
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1, "loss": 2.5, "seconds": 1}\n'


def test_a_folder_that_is_no_run_and_a_broken_run_are_told(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        open_run(tmp_path)
    assert str(caught.value) == f"{tmp_path} is not a run: there is no config.toml in it"
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in run.path.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    (copy / "weights.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    with pytest.raises(
        RunError, match=r"weights\.safetensors: expected weights, found a broken file"
    ):
        open_run(copy)
    (copy / "weights.safetensors").unlink()
    with pytest.raises(RunError) as caught:
        open_run(copy)
    assert str(caught.value) == f"{copy} has no weights yet; finish it with --resume"
    (copy / "roles.json").write_text("{")
    with pytest.raises(RunError, match=r"roles\.json: expected JSON, found a broken file"):
        open_run(copy)
    assert np.isfinite(run.evaluate("valid", baselines=False).mrr)

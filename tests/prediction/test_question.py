"""Questions are parsed as people write them; a mistake names the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

import getd
from getd.errors import FactError, FactFileError
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.question import parse_question, read_facts, read_questions
from getd.run import Run


def test_questions_by_role_are_questions_by_position(quick_run: Run) -> None:
    names = {"season": "2016-17", "to": "?", "player": "Ada Hale", "from": "Oxbow United"}
    by_role = quick_run.predict("transfer", names)
    by_position = quick_run.predict("transfer", ["Ada Hale", "Oxbow United", "?", "2016-17"])
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
            {"player": "?", "city": ["Oxbow"], "coach": []},
            "expected a name for the role 'coach', found an empty list",
        ),
        (
            "born in",
            {"playr": "?", "city": "Oxbow"},
            "relation 'born in' has the roles player, city, found playr, city; "
            "did you mean 'player'?",
        ),
        ("bornin", {"player": "?"}, "unknown relation 'bornin'; did you mean 'born in'?"),
    ],
)
def test_questions_that_cannot_be_understood(
    quick_run: Run, relation: str, entities: list[str], message: str
) -> None:
    with pytest.raises(FactError) as caught:
        quick_run.predict(relation, entities)
    assert str(caught.value) == message


def test_a_name_of_several_relations_is_told_apart_by_arity_or_asked_for() -> None:
    kb = KnowledgeBase.from_facts({"train": [("r", "a", "b"), ("r", "a", "b", "c")]})
    relation = parse_question(kb, "r", ["a", "?"]).fact.relation
    assert relation.tolist() == [kb.relations.id("r(e1, e2)")]
    assert parse_question(kb, "r(e1, e2, e3)", ["a", "?", "c"]).position == 1
    assert parse_question(kb, "?", ["a", "b", "c"]).position is None
    with pytest.raises(FactError, match=r"^relation 'r' has 2 or 3 entities, found 4$"):
        parse_question(kb, "r", ["a", "?", "c", "a"])


def test_questions_from_a_file(quick_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(
        "born in\tAda Hale\t?\ntransfer\tAda Hale\t?\tOxbow United\t2016-17\n?\tAda Hale\tOxbow\n"
    )
    assert [question.position for question in read_questions(path, quick_run.kb)] == [1, 1, None]
    path.write_text("born in\tAda Hal\t?\nborn in\tAda Hale\tOxbow\n")
    with pytest.raises(FactFileError) as caught:
        read_questions(path, quick_run.kb)
    first = str(caught.value).splitlines()[0]
    hint = "did you mean 'Ada Hale'? (2 bad lines)"
    assert first == f"{path}:1: unknown entity 'Ada Hal'; {hint}"


def test_a_role_that_stands_twice(tmp_path: Path) -> None:
    """Qualifiers of one name have several values; by role, they are given as a list."""
    rows = [f"p{i},member of,club{i % 3},with,p{(i + 1) % 8},with,p{(i + 2) % 8}" for i in range(8)]
    (tmp_path / "facts.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    kb = getd.load(tmp_path / "facts.csv", format="hyper-csv")
    names = {"subject": "p0", "object": "?", "with": ["p1", "p2"]}
    question = parse_question(kb, "member of", names)
    assert question.text == ("member of", "p0", "?", "p1", "p2")
    message = r"has the roles subject, object, with, with, found subject, object, with$"
    with pytest.raises(FactError, match=message):
        parse_question(kb, "member of", {**names, "with": "p1"})
    _, blocks = read_facts(tmp_path / "facts.csv", kb)
    expected = join(*kb.splits.values())[4]
    assert sorted(kb.decode(blocks[4])) == sorted(kb.decode(expected))

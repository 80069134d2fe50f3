"""Questions are parsed as people write them; a mistake names the nearest name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import getd
from getd.errors import FactError, FactFileError
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.prediction.question import (
    parse_question,
    read_facts,
    read_new_facts,
    read_questions,
)
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
        (
            "transfer",
            ["?", "a"],
            "relation 'transfer' has 4 entities (player, from, to, season), found 2",
        ),
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


@pytest.fixture
def orders(tmp_path: Path) -> KnowledgeBase:
    """The knowledge base of a table without relations."""
    (tmp_path / "orders.csv").write_text("who,what\nann,tea\nbob,milk\ncid,tea\n")
    return getd.load(tmp_path / "orders.csv")


def test_a_table_without_relations_has_the_only_relation_of_the_run(
    orders: KnowledgeBase, tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    path.write_text("what,who\nmilk,ann\n")
    _, blocks = read_facts(path, orders)
    assert orders.decode(blocks[2]) == [("orders", "ann", "milk")]
    frame = pl.DataFrame({"who": ["ann", "bob"], "what": ["?", "tea"]})
    assert [question.text for question in read_questions(frame[:1], orders)] == [
        ("orders", "ann", "?")
    ]
    assert read_new_facts(frame[1:], orders) == [(0, ["bob", "tea"])]

    path.write_text("who,shop\nann,north\n")
    message = r"relation 'orders' has the roles who, what, found who, shop"
    with pytest.raises(FactFileError, match=message):
        read_facts(path, orders)


def test_a_table_without_relations_may_be_empty(orders: KnowledgeBase) -> None:
    frame = pl.DataFrame(schema={"who": pl.String, "what": pl.String})
    assert read_questions(frame, orders) == []
    assert read_facts(frame, orders) == ([], {})
    assert read_new_facts(frame, orders) == []


def test_a_lazy_frame_is_read_without_a_warning(
    orders: KnowledgeBase, recwarn: pytest.WarningsRecorder
) -> None:
    frame = pl.LazyFrame({"who": ["ann"], "what": ["milk"]})
    assert read_new_facts(frame, orders) == [(0, ["ann", "milk"])]
    assert not recwarn.list


def test_a_table_without_relations_has_the_only_relation_with_its_roles() -> None:
    tables = {
        "relation": ["buys", "visits", "likes"],
        "who": ["ann", "ann", "bob"],
        "what": ["tea", None, "tea"],
        "shop": [None, "north", None],
    }
    kb = KnowledgeBase.from_dataframe({"train": pl.DataFrame(tables)})
    _, blocks = read_facts(pl.DataFrame({"shop": ["north"], "who": ["bob"]}), kb)
    assert kb.decode(blocks[2]) == [("visits", "bob", "north")]
    message = r"^facts:1: unknown relation 'facts'; known: 'buys', 'likes', 'visits'"
    with pytest.raises(FactFileError, match=message):
        read_facts(pl.DataFrame({"what": ["tea"], "who": ["bob"]}), kb)


def test_a_file_that_is_called_as_a_relation_has_that_relation(tmp_path: Path) -> None:
    frame = pl.DataFrame({"relation": ["buys", "likes"], "who": ["ann"] * 2, "what": ["tea"] * 2})
    kb = KnowledgeBase.from_dataframe({"train": frame})
    (tmp_path / "likes.csv").write_text("who,what\nann,tea\n")
    _, blocks = read_facts(tmp_path / "likes.csv", kb)
    assert kb.decode(blocks[2]) == [("likes", "ann", "tea")]


def test_of_many_relations_only_the_nearest_is_named() -> None:
    kb = KnowledgeBase.from_facts({"train": [(f"r{i}", "a", "b") for i in range(6)]})
    with pytest.raises(FactError, match=r"^unknown relation 'xyz'$"):
        parse_question(kb, "xyz", ["a", "?"])


@pytest.fixture
def numbers() -> KnowledgeBase:
    return KnowledgeBase.from_facts({"train": [(1, 3, 2.5, "000"), (1, 4, 2.5, "001")]})


def test_numbers_in_a_question_are_names(numbers: KnowledgeBase) -> None:
    question = parse_question(numbers, 1, [3, "?", "000"])  # type: ignore[arg-type]
    assert question.text == ("1", "3", "?", "000")
    assert parse_question(numbers, "1", np.array([3, "?", "000"])).position == 1  # type: ignore[arg-type]
    assert parse_question(numbers, "1", {"e1": 3, "e2": np.float64(2.5), "e3": "?"}).position == 2
    assert parse_question(numbers, "?", [np.int64(3), 2.5, "000"]).position is None


@pytest.mark.parametrize(
    ("relation", "entities", "message"),
    [
        ("1", ["?", None, "000"], "expected a name, found None"),
        ("1", ["?", True, "000"], "expected a name, found True"),
        ("1", ["?", float("nan"), "000"], "expected a name, found nan"),
        ("1", ["?", "", "000"], "expected a name, found ''"),
        (None, ["?", 2.5, "000"], "expected a name, found None"),
        ("1", {"e1": "?", "e2": None, "e3": "000"}, "expected a name, found None"),
        ("1", {1: "?"}, "relation '1' has the roles e1, e2, e3, found 1; did you mean 'e1'?"),
        ("1", "?", "expected a list of names, found '?'"),
        ("1", None, "expected a list of names, found None"),
        (7, ["?", 2.5, "000"], "unknown relation '7'; known: '1'"),
        ("1", ["?", 7, "000"], "unknown entity '7'"),
    ],
)
def test_values_that_are_no_names_are_one_line(
    numbers: KnowledgeBase, relation: Any, entities: Any, message: str
) -> None:
    with pytest.raises(FactError) as caught:
        parse_question(numbers, relation, entities)
    assert str(caught.value) == message

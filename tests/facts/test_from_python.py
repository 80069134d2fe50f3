"""Facts from Python: tuples, and data frames of several libraries."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import getd
from getd.errors import FactError, FactFileError
from tests.tiny import all_facts


def test_missing_cells_of_pandas_are_holes() -> None:
    frame = pd.DataFrame(
        {"relation": ["r", "s"], "e1": ["a", "b"], "e2": pd.array([1, None], dtype="Int64")}
    )
    kb = getd.KnowledgeBase.from_dataframe({"train": frame})
    assert [kb.decode(facts) for facts in kb.split("train").values()] == [
        [("s", "b")],
        [("r", "a", "1")],
    ]
    with pytest.raises(
        FactError, match=r"^expected a name of its own for every column, found 'a' twice$"
    ):
        getd.KnowledgeBase.from_dataframe(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


@pytest.mark.parametrize(
    ("name", "problem"),
    [("", "column 2 without one; name it or delete it"), ("a\0b", "one with NUL in it")],
)
def test_columns_without_a_readable_name_are_refused(name: str, problem: str) -> None:
    with pytest.raises(FactFileError) as caught:
        getd.KnowledgeBase.from_dataframe({"train": pl.DataFrame({"a": ["x"], name: ["y"]})})
    expected = "expected a name of its own for every column, found"
    assert str(caught.value) == f"the train table: {expected} {problem}"


def test_cells_that_are_not_text_are_written_as_text() -> None:
    frame = pd.DataFrame({"who": ["Jordan", "Bird"], "year": [1991, 1986], "points": [31.5, 25.0]})
    kb = getd.KnowledgeBase.from_dataframe({"train": frame}, relation="scored")
    assert kb.decode(kb.split("train")[3]) == [
        ("scored", "Jordan", "1991", "31.5"),
        ("scored", "Bird", "1986", "25.0"),
    ]
    assert kb.signatures[0].roles == ("who", "year", "points")
    arrow = pa.table({"who": pa.array(["Jordan"]).dictionary_encode(), "year": [1991]})
    assert getd.KnowledgeBase.from_dataframe({"train": arrow}).n_entities == 2


def test_tables_of_splits_from_python_agree_on_their_columns() -> None:
    train, test = (
        pl.DataFrame({"player": ["a"], "club": ["b"]}),
        pl.DataFrame({"club": ["b"], "player": ["a"]}),
    )
    kb = getd.KnowledgeBase.from_dataframe({"train": train, "test": test}, relation="plays")
    assert kb.n_relations == 1
    assert "1 facts of test are in train too (kept)" in kb.notices
    with pytest.raises(FactFileError) as caught:
        getd.KnowledgeBase.from_dataframe(
            {"train": train, "test": test.rename({"player": "players"})}, relation="plays"
        )
    expected = "for relation 'plays' the columns player, club as in the train table"
    assert str(caught.value) == f"the test table: expected {expected}, but 'player' is missing"


def test_missing_numbers_are_holes() -> None:
    frame = pl.DataFrame({"relation": ["r", "r"], "e1": ["a", "b"], "e2": [1.5, float("nan")]})
    assert getd.KnowledgeBase.from_dataframe({"train": frame}).arities == (1, 2)


def test_facts_from_python() -> None:
    kb = getd.KnowledgeBase.from_facts(
        {"train": [("r", "a", 1), ("r", "b", 2.5, "c")], "test": [["r", "a", "b"]]}
    )
    assert (kb.arities, list(kb.entities), list(kb.relations)) == (
        (2, 3),
        ["1", "2.5", "a", "b", "c"],
        ["r(e1, e2)", "r(e1, e2, e3)"],
    )
    assert kb.split("test")[2].rows().tolist() == [[0, 2, 3]]
    assert np.array_equal(
        kb.known("train").lookup(np.array([0]), np.array([[2, 0]]), 1).values, [0]
    )


def test_a_whole_number_of_any_size_is_a_name() -> None:
    kb = getd.KnowledgeBase.from_facts([("r", 10**400)])
    assert list(kb.entities) == [str(10**400)]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([("r",)], "fact 0: expected a relation and at least one entity, found ('r',)"),
        ([("r", "a"), "rab"], "fact 1: expected a relation and at least one entity, found 'rab'"),
        ([("r", None)], "fact 0: expected names, found None"),
        ([("r", "")], "fact 0: expected names, found ''"),
        ([("r", True)], "fact 0: expected names, found True"),
        ([("r", float("nan"))], "fact 0: expected names, found nan"),
        ([("r", -float("inf"))], "fact 0: expected names, found -inf"),
        ([("r", "a\0")], "fact 0: expected names, found 'a\\x00'"),
        ([("r", "\ud800")], "expected names that UTF-8 can hold, found '\\ud800'"),
        ([], "facts: expected facts, found none"),
        (
            {"tran": []},
            "expected the splits train, valid, test, found 'tran'; did you mean 'train'?",
        ),
    ],
)
def test_facts_from_python_that_cannot_be_understood(facts: object, message: str) -> None:
    with pytest.raises(FactError) as caught:
        getd.KnowledgeBase.from_facts(facts)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_frame_that_is_none_is_refused() -> None:
    with pytest.raises(FactError, match=r"^expected a polars, pandas or Arrow table, found int$"):
        getd.KnowledgeBase.from_dataframe(3)


def names_of(frame: Any) -> list[tuple[str, ...]]:
    kb = getd.KnowledgeBase.from_dataframe({"train": frame})
    return sorted(all_facts(kb))


def test_a_named_index_of_pandas_is_a_column() -> None:
    frame = pd.DataFrame({"who": ["ann", "bob"], "what": ["tea", "milk"], "n": [1, 2]})
    expected = [("facts", "ann", "tea", "1"), ("facts", "bob", "milk", "2")]
    assert names_of(frame) == names_of(frame.set_index("who")) == expected
    assert names_of(frame.set_index(["who", "what"])) == expected
    frame.index.name = "n"
    with pytest.raises(FactError, match=r"^expected a name of its own .*, found 'n' twice$"):
        names_of(frame)


def test_frames_from_python_say_how_they_were_read() -> None:
    frame = pl.DataFrame({"who": ["ann", "bob"], "what": ["tea", "milk"]})
    fact = "no column 'relation', so each row is a fact facts(who, what)"
    kb = getd.KnowledgeBase.from_dataframe(frame)
    assert kb.notices[0] == f"the table: {fact}"
    kb = getd.KnowledgeBase.from_dataframe({"train": frame, "test": frame})
    assert kb.notices[:2] == (f"the train table: {fact}", f"the test table: {fact}")


START = pd.Timestamp("2023-02-13")
VALUES = {
    "bool": [True, False],
    "int8": np.array([1, 2], dtype="int8"),
    "float32": np.array([0.1, 2], dtype="float32"),
    "float": [1e20, 1e-7],
    "hole": [1.0, np.nan],
    "Float32": pd.array([0.1, None], dtype="Float32"),
    "Int64": pd.array([1, None], dtype="Int64"),
    "boolean": pd.array([True, None], dtype="boolean"),
    "category": pd.Categorical(["a", "b"]),
    "date": [dt.date(2023, 2, 13), None],
    "time": [dt.time(1, 2, 3), dt.time(1, 2, 3, 50_000)],
    "python": pd.Series([dt.datetime(2023, 2, 13), dt.datetime(2023, 2, 13, 1)], dtype=object),
    "midnight": [START, START + pd.Timedelta("1h")],
    "zone": [START.tz_localize("Europe/Berlin"), None],
    "offset": [START.tz_localize("+01:00"), None],
    "milli": pd.Series([START, START + pd.Timedelta("500ms")]).dt.as_unit("ms"),
    "nano": pd.Series([START, START + pd.Timedelta("50ms")]).dt.as_unit("ns"),
    "bytes": [b"a", b"b"],
    "floats": pd.Series([1.5e-5, None], dtype=object),
    "categories of floats": pd.Categorical([1.5e-5, 2.0]),
    "decimals": [Decimal("1.50"), Decimal(2)],
    "decimal hole": [Decimal("1E+3"), None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_has_one_text_in_pandas_arrow_and_parquet(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"relation": ["r", "s"], "e1": ["a", "b"], "e2": VALUES[kind]})
    table = pa.Table.from_pandas(frame)
    frame.to_parquet(tmp_path / "facts.parquet")
    loaded = getd.load(tmp_path / "facts.parquet")
    assert names_of(frame) == names_of(table) == names_of(pl.DataFrame(table))
    assert names_of(frame) == sorted(all_facts(loaded))


def test_the_texts_of_values() -> None:
    shown = {"bool": "true", "float32": "0.1", "midnight": "2023-02-13 01:00:00"}
    shown |= {"zone": "2023-02-13 00:00:00+01:00", "nano": "2023-02-13 00:00:00.05"}
    for kind, text in shown.items():
        frame = pd.DataFrame({"relation": ["r", "r"], "e1": ["a", "b"], "e2": VALUES[kind]})
        assert any(text in fact for fact in names_of(frame))


@pytest.mark.parametrize(
    "value", [["a"], {"a": 1}, ("a",), np.array([1]), {1}, pd.Timedelta("1h"), b"\xff"]
)
def test_cells_that_have_no_text_are_refused(value: object) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "what": pd.Series([value, value], dtype=object)})
    message = f"^the train table: expected text in column 'what', found {type(value).__name__}$"
    with pytest.raises(FactFileError, match=message):
        names_of(frame)

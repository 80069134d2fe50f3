"""A vocabulary is sorted, finds names both ways, and survives its file whatever the names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from getd.errors import FactError
from getd.facts.escape import escape, escape_names, unescape_names, wrong_escape
from getd.facts.vocabulary import Vocabulary
from tests.facts.names import NAMES


@given(st.lists(NAMES))
def test_names_are_distinct_and_in_order_of_code_points(names: list[str]) -> None:
    assert list(Vocabulary(names)) == sorted(set(names))


@given(st.lists(NAMES, min_size=1))
def test_ids_and_names_are_inverse(names: list[str]) -> None:
    vocabulary = Vocabulary(names)
    assert vocabulary.decode(vocabulary.ids(names)) == names
    assert [vocabulary[vocabulary.id(name)] for name in names] == names
    assert all(name in vocabulary for name in names)


@given(st.lists(NAMES))
def test_what_is_saved_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "entities.txt"
    Vocabulary(names).save(path)
    assert Vocabulary.open(path) == Vocabulary(names)
    assert path.read_bytes().count(b"\n") == len(set(names))


def test_the_file_is_plain_text(tmp_path: Path) -> None:
    Vocabulary(["tab\there", "Zoë", "back\\slash", "two\nlines"]).save(tmp_path / "names.txt")
    assert (tmp_path / "names.txt").read_text(
        encoding="utf-8"
    ) == "Zoë\nback\\\\slash\ntab\\there\ntwo\\nlines\n"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    vocabulary = Vocabulary(["Jordan", "Bulls"])
    with pytest.raises(FactError, match=r"^unknown name 'Jordon'; did you mean 'Jordan'\?$"):
        vocabulary.id("Jordon")
    with pytest.raises(FactError, match=r"^unknown name 'jordan'; did you mean 'Jordan'\?$"):
        vocabulary.ids(["Bulls", "jordan"])
    assert "Pippen" not in vocabulary
    assert 3 not in vocabulary


def test_few_names_and_many_are_decoded_alike() -> None:
    names = Vocabulary([f"name {number:04}" for number in range(2000)])
    ids = np.arange(1999, -1, -3)
    assert names.decode(ids) == [name for number in ids for name in names.decode([number])]
    assert names.decode(ids[:2]) == ["name 1999", "name 1996"]


def test_an_empty_vocabulary_knows_nothing() -> None:
    with pytest.raises(FactError, match=r"^unknown name 'x'$"):
        Vocabulary([]).ids(["x"])


def test_names_that_no_file_can_hold_are_refused() -> None:
    with pytest.raises(FactError, match=r"^expected names that UTF-8 can hold, found '\\ud800'$"):
        Vocabulary(["\ud800"])


@given(NAMES)
def test_escaping_can_be_undone_and_leaves_one_line_without_tabs(name: str) -> None:
    column = escape_names(pl.Series([name]))
    assert column.item() == escape(name)
    assert unescape_names(column).item() == name
    assert not set("\t\n\r") & set(escape(name))
    assert wrong_escape(escape(name)) is None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("\\q", "\\q"), ("a\\", "\\"), ("\\\\q", None), ("\\\\\\x", "\\x"), ("\\t", None)],
)
def test_an_escape_nobody_writes_is_found(text: str, wrong: str | None) -> None:
    assert wrong_escape(text) == wrong

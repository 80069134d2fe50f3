"""Converting from Python, and the form of small files."""

from __future__ import annotations

from pathlib import Path

import pytest

from getd.datasets.convert import convert
from getd.errors import FactError, WriteError
from getd.facts.knowledge_base import KnowledgeBase
from getd.formats.registry import detect_format


def test_what_is_there_is_replaced_only_if_one_says_so(tmp_path: Path) -> None:
    source, out = tmp_path / "facts.txt", tmp_path / "out.jsonl"
    source.write_text("r\ta\tb\n")
    out.write_text("mine")
    with pytest.raises(WriteError) as caught:
        convert(source, out)
    assert str(caught.value) == f"{out} exists; choose another place or pass --overwrite"
    assert out.read_text() == "mine"
    assert convert(source, out, overwrite=True).facts == {"out.jsonl": 1}
    assert "mine" not in out.read_text()


@pytest.mark.parametrize("name", ["notes.md", "train.json", "train.txt"])
def test_a_folder_with_files_that_we_would_not_have_written_is_never_replaced(
    tmp_path: Path, name: str
) -> None:
    source = tmp_path / "facts.txt"
    source.write_text("r\ta\tb\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    with pytest.raises(WriteError) as caught:
        convert(source, out, overwrite=True)
    assert str(caught.value) == f"{out} holds more than facts ({name}); choose another place"
    assert (out / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a,born in,b\nc,born in,d\n", "hyper-csv"),
        ("a,born in,b\nc,lives in,d\n", "csv"),
        ("a,born in,b\n", "csv"),
    ],
)
def test_a_relation_that_comes_again_tells_hyper_relational_rows(
    tmp_path: Path, text: str, form: str
) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(text)
    assert detect_format(path) == form


@pytest.mark.parametrize("relation", ["", 3])
def test_a_table_needs_a_relation_with_a_name(relation: object) -> None:
    import polars as pl

    with pytest.raises(FactError, match=rf"^expected the name of a relation, found {relation!r}$"):
        KnowledgeBase.from_dataframe(pl.DataFrame({"a": ["x"], "b": ["y"]}), relation=relation)  # type: ignore[arg-type]

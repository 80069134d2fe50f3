"""``getd info`` and ``getd convert`` as a user sees them."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import getd as package
from getd.cli.app import main
from getd.cli.commands.info import MAX_ROWS
from getd.formats.registry import read_named
from tests.conftest import Result
from tests.tiny import rows_of

Getd = Callable[..., Result]


def test_json_has_what_is_promised(getd: Getd) -> None:
    report = json.loads(getd("info", "demo", "--json").out)
    train = report["splits"]["train"]
    assert (report["entities"], report["relations"], report["duplicates"]) == (201, 8, 0)
    assert sum(train["arities"].values()) == train["facts"]
    assert 0 <= report["leakage"]["key_seen"] <= 1
    assert 0 <= report["leakage"]["unseen_entity_facts"] <= 1


def test_tables_show_splits_arities_relations_and_leakage(getd: Getd) -> None:
    out = getd("info", "demo").out
    for words in (
        "demo: 201 entities, 8 relations",
        "Splits",
        "Arities",
        "Relations",
        "Leakage of test",
        "plays for",
    ):
        assert words in out


def test_names_are_shown_as_they_are(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("[bold]r[/x]\ta\tb\n:apple:\ta\tb\n")
    out = getd("info", tmp_path).out
    assert "[bold]r[/x]" in out
    assert ":apple:" in out


def test_a_set_without_train_is_reported_too(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("r\ta\tb\n")
    assert "Leakage: not measured" in getd("info", tmp_path).out


def test_arities_are_chosen(getd: Getd) -> None:
    assert list(json.loads(getd("info", "demo", "--arity", 3, "--json").out)["arities"]) == ["3"]
    assert list(json.loads(getd("info", "demo", "--max-arity", 3, "--json").out)["arities"]) == [
        "2",
        "3",
    ]


def test_convert_keeps_every_fact_order_and_duplicate(getd: Getd, tmp_path: Path) -> None:
    source = tmp_path / "facts.tsv"
    source.write_text("r\ta\tb\nr\ta\tb\ns\ta\nr\tc\td\n")
    result = getd("convert", source, tmp_path / "facts.jsonl")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"wrote 4 facts to facts.jsonl at {tmp_path / 'facts.jsonl'}\n"
    assert (tmp_path / "facts.jsonl").read_text().splitlines()[
        2
    ] == '{"relation":"s","entities":["a"]}'
    assert getd("convert", tmp_path / "facts.jsonl", tmp_path / "again.tsv").code == 0
    assert (tmp_path / "again.tsv").read_text() == source.read_text()


def test_a_single_file_is_split_into_a_folder_as_it_would_be_loaded(
    getd: Getd, tmp_path: Path
) -> None:
    source = tmp_path / "facts.tsv"
    source.write_text("".join(f"r\ta{i % 9}\tb{i % 7}\n" for i in range(60)))
    result = getd("convert", source, tmp_path / "split", "--split-seed", 3, "--json")
    assert json.loads(result.out)["facts"] == {"train.tsv": 50 - 2, "valid.tsv": 6, "test.tsv": 6}
    kb = package.load(source, seed=3)
    assert rows_of(read_named(tmp_path / "split" / "test.tsv")) == kb.decode(kb.split("test")[2])


def test_splits_do_not_fit_into_one_file(getd: Getd, tmp_path: Path) -> None:
    result = getd("convert", "demo", tmp_path / "demo.tsv")
    message = "demo has train and valid and test; name a folder to write them to"
    assert (result.code, result.err) == (1, f"{tmp_path / 'demo.tsv'}: {message}\n")


def test_a_compressed_file_is_not_written_by_mistake(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("r\ta\tb\n")
    result = getd("convert", tmp_path / "facts.tsv", tmp_path / "facts.csv.gz")
    assert (result.code, result.err) == (
        2,
        "facts.csv.gz: compressed files are read, not written; leave out .gz\n",
    )


def test_roles_go_with_the_facts(getd: Getd, tmp_path: Path) -> None:
    for form in ("csv", "parquet", "jsonl"):
        assert getd("convert", "demo", tmp_path / form, "--to", form).code == 0
        assert package.load(tmp_path / form).signatures == package.load("demo").signatures


def test_tsv_names_relations_by_their_roles_where_names_repeat(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "train.csv").write_text("s,r,o,a,1\ns,r,o,b,1\ns,r,o\n")
    assert getd("convert", tmp_path / "in", tmp_path / "out", "--format", "hyper-csv").code == 0
    lines = (tmp_path / "out" / "train.tsv").read_text().splitlines()
    assert lines == [
        "r(subject, object, a)\ts\to\t1",
        "r(subject, object, b)\ts\to\t1",
        "r(subject, object)\ts\to",
    ]


def test_relations_that_tsv_would_confuse_are_refused(getd: Getd, tmp_path: Path) -> None:
    records = [
        {"relation": "r", "entities": {"a": "x"}},
        {"relation": "r", "entities": {"b": "x"}},
        {"relation": "r(a)", "entities": ["x"]},
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, records)))
    result = getd("convert", tmp_path, tmp_path / "out")
    assert (result.code, result.err) == (
        1,
        "tsv cannot tell apart 2 relations called 'r(a)' with 1 entities; choose another form\n",
    )


def test_hyper_csv_needs_two_entities(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("r\ta\n")
    result = getd("convert", tmp_path, tmp_path / "out", "--to", "hyper-csv")
    assert (result.code, result.err) == (
        1,
        "hyper-csv needs a subject and an object, found facts with one entity\n",
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_is_read_back_whatever_the_encoding_of_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    (tmp_path / "train.txt").write_text("größer\tZoë\t𝔘\n", encoding="utf-8")
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["info", str(tmp_path), "--json"]) == 0
    assert list(json.loads(output.buffer.getvalue())["by_relation"]) == ["größer"]  # type: ignore[attr-defined]


def test_output_into_a_pipe_that_closes_is_no_error() -> None:
    getd = f"{shlex.quote(sys.executable)} -m getd"
    done = subprocess.run(
        f"{getd} info demo | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "demo: 201 entities, 8 relations\n",
        "",
    )
    piped = f"{getd} datasets --json | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", piped], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("extra", "title"), [(0, "Relations"), (1, "Relations, the {} largest of {}")]
)
def test_info_says_how_many_relations_it_does_not_show(
    getd: Getd, tmp_path: Path, extra: int, title: str
) -> None:
    number = MAX_ROWS + extra
    path = tmp_path / "facts.tsv"
    path.write_text("".join(f"r{i}\ta\tb\n" for i in range(number)))
    lines = getd("info", path).out.splitlines()
    assert title.format(MAX_ROWS, number) in lines

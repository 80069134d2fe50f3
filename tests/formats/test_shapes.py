"""Files of odd shapes are read in time that grows with their size; damaged tables are one line."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from getd.datasets.convert import convert
from getd.datasets.load import load
from getd.errors import FactFileError
from getd.facts.knowledge_base import KnowledgeBase
from getd.formats.registry import read_named
from getd.prediction.question import read_facts
from getd.profile.describe import describe
from tests.tiny import rows_of

SECONDS = 30  # each takes a second at most; what is quadratic took minutes


def lines(rows: list[str]) -> str:
    return "\n".join([*rows, ""])


def many_roles(n: int) -> tuple[str, str]:
    records = [
        {"relation": f"r{i % 50}", "entities": {f"a{i}": "x", f"b{i}": f"y{i % 9}"}}
        for i in range(n)
    ]
    return "facts.jsonl", lines([json.dumps(record) for record in records])


def many_sets_of_columns(n: int) -> tuple[str, str]:
    n //= 40
    rows = [
        f"r{i}," + ",".join("x" if (i + j) % (2 + i % 7) == 0 else "" for j in range(n))
        for i in range(2 * n)
    ]
    return "facts.csv", lines(["relation," + ",".join(f"c{j}" for j in range(n)), *rows])


SHAPES: dict[str, Callable[[int], tuple[str, str]]] = {
    "a signature for every fact": many_roles,
    "a set of columns for every relation": many_sets_of_columns,
    "roles as a column": lambda n: (
        "facts.csv",
        lines(["relation,roles,e1", *(f'r,"[""a{i}""]",x' for i in range(n))]),
    ),
    "a qualifier for every fact": lambda n: (
        "facts.csv",
        lines([f"a,r,b,q{i},v" for i in range(n)]),
    ),
    "a relation for every fact": lambda n: (
        "facts.tsv",
        lines([f"r{i}\ta{i}\tb" for i in range(n)]),
    ),
    "an arity for every fact": lambda n: (
        "facts.tsv",
        lines(["r" + "\ta" * i for i in range(1, n // 100)]),
    ),
    "one wide fact": lambda n: ("facts.txt", f"r {'a b ' * n}\nr a\n"),
    "one wide table": lambda n: (
        "facts.csv",
        lines([",".join(f"c{i}" for i in range(n)), ",".join(["a"] * n)]),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_reporting_and_writing_take_time_that_grows_with_the_file(
    tmp_path: Path, shape: str
) -> None:
    name, text = SHAPES[shape](4000)
    path = tmp_path / name
    path.write_text(text)
    begin = time.process_time()
    report = describe(load(path))
    written = convert(path, tmp_path / "out", "jsonl")
    assert time.process_time() - begin < SECONDS
    n_facts = sum(split.facts for split in report.splits.values()) + report.duplicates
    assert n_facts == sum(written.facts.values()) == len(read_named(path))


def test_facts_of_one_arity_are_one_block_whatever_their_roles(tmp_path: Path) -> None:
    name, text = many_roles(100)
    (tmp_path / name).write_text(text)
    labels = read_named(tmp_path / name)
    assert (len(labels.blocks), len(labels.signatures)) == (1, 100)


def test_a_file_of_unknown_names_takes_time_that_grows_with_it(tmp_path: Path) -> None:
    kb = KnowledgeBase.from_facts({"train": [("knows", f"person {i:05}", "b") for i in range(500)]})
    path = tmp_path / "facts.tsv"
    path.write_text(lines([f"knows\tpersn {i:05}\tb" for i in range(2000)]))
    begin = time.process_time()
    with pytest.raises(FactFileError) as caught:
        read_facts(path, kb)
    assert time.process_time() - begin < SECONDS
    shown = str(caught.value).split("\n")
    message = "unknown entity 'persn 00000'; did you mean 'person 00000'?"
    assert (shown[0], len(shown)) == (f"{path}:1: {message} (2000 bad lines)", 10)


def test_a_header_of_many_columns_is_told_in_short_for_each_of_many_bad_rows(
    tmp_path: Path,
) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(lines([",".join(f"column{i}" for i in range(5000)), *["a"] * 5000]))
    begin = time.process_time()
    with pytest.raises(FactFileError, match="expected 5000 fields") as caught:
        read_named(path, "csv")
    assert time.process_time() - begin < SECONDS
    assert max(map(len, str(caught.value).split("\n"))) <= 300


def test_a_footer_with_an_endless_list_is_left_to_polars(tmp_path: Path) -> None:
    """Numbers with a point take no byte to skip, so the end of the file would not end them."""
    footer = b"\x19\xf7" + b"\xff" * 8 + b"\x7f"  # a list of 2^63 of them
    path = tmp_path / "facts.parquet"
    path.write_bytes(b"PAR1\0" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    begin = time.process_time()
    with pytest.raises(FactFileError, match="expected a whole Parquet file, found a broken one"):
        read_named(path)
    assert time.process_time() - begin < SECONDS


LONG = "x" * 200_000  # more than Python's CSV reader takes by itself


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"relation,{LONG},b\nr,c,d\n", ("r", "c", "d")),
        (f'relation,e1,e2\nr,"{LONG}",b\n', ("r", LONG, "b")),
        (f"a,r,{LONG}\nb,r,c\n", ("r", "a", LONG)),
        (f'a,r,"{LONG}"\nb,r,c\n', ("r", "a", LONG)),
    ],
    ids=["header", "quoted", "hyper-relational", "hyper-relational, quoted"],
)
def test_csv_may_have_long_fields_whatever_was_read_before(
    tmp_path: Path, text: str, expected: tuple[str, ...]
) -> None:
    before = csv.field_size_limit(131_072)  # as in a new process
    try:
        path = tmp_path / "facts.csv"
        path.write_text(text)
        assert rows_of(read_named(path))[0] == expected
    finally:
        csv.field_size_limit(before)


def test_csv_of_a_format_that_is_named_may_have_long_fields_too(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)
    try:
        path = tmp_path / "facts.csv"
        path.write_text(f'a,r,"{LONG}"\n')
        assert read_named(path, "hyper-csv").rows() == [("r", "a", LONG)]
    finally:
        csv.field_size_limit(before)


def test_hyper_relational_csv_is_recognised_by_the_lines_that_its_first_megabyte_has_whole(
    tmp_path: Path,
) -> None:
    long = "x" * 400_000
    path = tmp_path / "facts.csv"
    path.write_text(f"a,r,{long}\nb,r,{long}\n{long},q,c\n")
    assert read_named(path).rows() == [("r", "a", long), ("r", "b", long), ("q", long, "c")]


def test_a_parquet_file_with_any_bit_of_its_first_page_flipped_is_read_or_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = io.BytesIO()
    frame = pl.DataFrame(
        {"relation": ["r"] * 6, "e1": [*"abcdef"], "e2": [None, "a", None, "b", "c", "d"]}
    )
    frame.write_parquet(file, compression="uncompressed", statistics=False)
    sound = file.getvalue()
    path = tmp_path / "facts.parquet"
    messages = []
    for offset, bit in product(range(4, 64), range(8)):
        damaged = bytearray(sound)
        damaged[offset] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            read_named(path)
        except FactFileError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(line.startswith(f"{path}: ") for message in messages for line in message.split("\n"))
    assert all(len(line) <= 300 for message in messages for line in message.split("\n"))
    assert capfd.readouterr() == ("", "")

"""Facts from tables: CSV with a header, Parquet, and data frames from Python.

A table has a ``relation`` column, or none and then is all of one relation. The other columns are the entities:

- ``e1, e2, …``: positions. A fact may have fewer entities than there are columns; its last cells are then empty.
  A column ``roles`` beside them, where there is one, holds the role names of each fact as a JSON list.
- any other names: roles. A relation has the roles that any of its rows fills, and then every row must fill them.
"""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl

from getd.errors import FactFileError
from getd.facts.columns import Columns, columns_to_named, numbered
from getd.facts.frames import check_header, table_to_named
from getd.facts.named import NamedFacts
from getd.facts.role_order import RoleOrder
from getd.formats.parquet import BrokenParquet, decode_parquet
from getd.formats.plain_text import read_csv_rows, with_lines
from getd.io.lines import MAX_LINE, read_blocks, read_head
from getd.io.problems import Problems
from getd.visible import shorten


def read_csv(path: Path, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from CSV with a header; comma, or semicolon or tab where the header has no comma."""
    header, separator, header_line = csv_header(path)
    problems, parts = Problems(path), []
    may_be_a_fact = (
        len(header) % 2 == 1 and len(header) >= 3 and "relation" not in map(str.lower, header)
    )
    hint = "; for rows without a header there is --format hyper-csv" if may_be_a_fact else ""
    expected = f"expected {len(header)} fields ({shorten(', '.join(header), 150)})"
    for lines, fields in read_csv_rows(path, separator, problems):
        body = lines > header_line
        if fields.width == len(header):
            parts.append(with_lines(lines, numbered(fields)).filter(pl.Series(body)))
        else:
            for line in lines[body].tolist():
                problems.add(line, f"{expected}, found {fields.width}{hint}")
    problems.check()
    if sum(len(part) for part in parts) == 0:
        raise FactFileError(path, [("", "expected rows below the header, found none")])
    table = pl.concat(parts).sort("line")
    cells = table.drop("line").select(pl.all().fill_null(""))
    return columns_to_named(Columns(header, cells, table["line"], problems), relation, order)


def csv_header(path: Path) -> tuple[list[str], str, int]:
    """The column names of a CSV file, what separates them, and the line on which the header ends."""
    text = read_head(path, 4 * MAX_LINE).decode("utf-8", errors="replace")
    skipped = len(text) - len(text.lstrip("\r\n"))
    first = text[skipped:].split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    line = text[:skipped].count("\n") + 1
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    try:
        header = [
            name.strip()
            for name in next(csv.reader([first.rstrip("\r")], delimiter=separator, strict=True), [])
        ]
    except csv.Error as error:
        wrong = (
            "lines that end with a carriage return alone"
            if "\r" in first
            else f"a broken one ({error})"
        )
        raise FactFileError(
            path, [(f":{line}", f"expected a header of CSV, found {wrong}")]
        ) from None
    check_header(path, header, f":{line}")
    return header, separator, line


def read_parquet(path: Path, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a Parquet file."""
    try:
        table = decode_parquet(b"".join(read_blocks(path)))
    except BrokenParquet as error:
        raise FactFileError(
            path, [("", f"expected a whole Parquet file, found a broken one ({error})")]
        ) from None
    if len(table) == 0:
        raise FactFileError(path, [("", "expected facts, found a table without rows")])
    return table_to_named(table, str(path), relation, order)

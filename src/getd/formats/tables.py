"""Facts from tables: CSV with a header, Parquet, and data frames from Python.

A table has a ``relation`` column, or none and then is all of one relation. The other columns are the entities:

- ``e1, e2, …``: positions. A fact may have fewer entities than there are columns; its last cells are then empty.
  A column ``roles`` beside them, where there is one, holds the role names of each fact as a JSON list.
- any other names: roles. A relation has the roles that any of its rows fills, and then every row must fill them.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from getd.errors import FactError, FactFileError
from getd.facts.columns import Columns, column_labels, numbered
from getd.facts.named import Labels, text_series
from getd.facts.role_order import RoleOrder
from getd.formats.parquet import BrokenParquet, decode_parquet
from getd.formats.plain_text import read_csv_rows, with_lines
from getd.io.lines import MAX_LINE, Problems, read_blocks, read_head
from getd.io.panics import Panic, panics_as_errors
from getd.visible import shorten


def read_csv(path: Path, relation: str, order: RoleOrder) -> Labels:
    """Facts from CSV with a header; comma, or semicolon or tab where the header has no comma."""
    header, separator, header_line = csv_header(path)
    problems, parts = Problems(path), []
    may_be_a_fact = len(header) % 2 == 1 and len(header) >= 3 and "relation" not in map(str.lower, header)
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
    return column_labels(Columns(header, cells, table["line"], problems), relation, order)


def csv_header(path: Path) -> tuple[list[str], str, int]:
    """The column names of a CSV file, what separates them, and the line on which the header ends."""
    text = read_head(path, 4 * MAX_LINE).decode("utf-8", errors="replace")
    skipped = len(text) - len(text.lstrip("\r\n"))
    first = text[skipped:].split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    line = text[:skipped].count("\n") + 1
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    try:
        header = [name.strip() for name in next(csv.reader([first.rstrip("\r")], delimiter=separator, strict=True), [])]
    except csv.Error as error:
        wrong = "lines that end with a carriage return alone" if "\r" in first else f"a broken one ({error})"
        raise FactFileError(path, [(f":{line}", f"expected a header of CSV, found {wrong}")]) from None
    check_header(path, header, f":{line}")
    return header, separator, line


def check_header(path: Path | str, header: Sequence[str], place: str) -> None:
    """Every column has a name, and no two the same."""
    counts = Counter(header)
    twice = next((name for name in header if counts[name] > 1), None)
    if not all(header) or twice is not None or any("\0" in name for name in header):
        wrong = "an empty one" if not all(header) else f"{twice!r} twice" if twice is not None else "one with NUL in it"
        raise FactFileError(path, [(place, f"expected a name of its own for every column, found {wrong}")])


def _text(table: str, column: pl.Series) -> pl.Series:
    """A column as text, the empty text for null and NaN; what has no text is refused."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    try:
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Duration):
            raise TypeError
        return column.cast(pl.String).fill_null("")
    except (TypeError, pl.exceptions.PolarsError):
        raise FactFileError(table, [("", f"expected text in column {column.name!r}, found {column.dtype}")]) from None


def read_parquet(path: Path, relation: str, order: RoleOrder) -> Labels:
    """Facts from a Parquet file."""
    try:
        table = decode_parquet(b"".join(read_blocks(path)))
    except BrokenParquet as error:
        raise FactFileError(path, [("", f"expected a whole Parquet file, found a broken one ({error})")]) from None
    if len(table) == 0:
        raise FactFileError(path, [("", "expected facts, found a table without rows")])
    return table_labels(table, str(path), relation, order)


def table_labels(table: pl.DataFrame, name: str, relation: str, order: RoleOrder) -> Labels:
    """Facts from a data frame; cells that are not text are written as text. ``name`` is how errors call the table."""
    check_header(name, table.columns, "")
    if table.schema.get("roles") == pl.List(pl.String):
        texts = [None if roles is None else json.dumps(roles.to_list()) for roles in table["roles"]]
        table = table.with_columns(pl.Series("roles", texts, dtype=pl.String))
    try:
        with panics_as_errors():
            cells = numbered(pl.DataFrame([_text(name, column) for column in table.get_columns()]))
    except Panic as error:
        raise FactFileError(name, [("", f"expected columns of text, found others ({error})")]) from None
    rows = pl.Series("line", range(1, len(table) + 1), dtype=pl.Int64)
    problems = Problems(name, place=": row {}")
    nul = cells.select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series()
    for row in rows.filter(nul).to_list():
        problems.add(row, "expected text, found a NUL character")
    return column_labels(Columns(table.columns, cells, rows, problems), relation, order)


def frame_labels(frame: Any, name: str, relation: str, order: RoleOrder) -> Labels:
    """Facts from a polars, pandas or Arrow table."""
    if not isinstance(relation, str) or not relation:
        raise FactError(f"expected the name of a relation, found {relation!r}")
    return table_labels(_to_polars(frame), name, relation, order)


def _to_polars(frame: Any) -> pl.DataFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(frame)
    try:
        return pl.DataFrame(frame)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise FactError(f"expected a polars, pandas or Arrow table, found {type(frame).__name__}") from None


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Cell by cell, so that it needs no Arrow."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise FactError(f"expected a name of its own for every column, found {max(names, key=names.count)!r} twice")
    columns = [frame.iloc[:, place] for place in range(len(names))]
    texts = [
        [None if missing else str(cell) for cell, missing in zip(column, column.isna(), strict=True)]
        for column in columns
    ]
    return pl.DataFrame([text_series(name, text) for name, text in zip(names, texts, strict=True)])

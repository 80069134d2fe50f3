"""Data frames to named facts: columns of any type become text."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from getd.errors import FactError, FactFileError
from getd.facts.columns import Columns, columns_to_named, numbered
from getd.facts.named import NamedFacts, text_series
from getd.facts.role_order import RoleOrder
from getd.io.panics import Panic, panics_as_errors
from getd.io.problems import Problems


def is_frame(value: object) -> bool:
    """Whether a value looks like a data frame of some library."""
    return hasattr(value, "columns") or hasattr(value, "collect_schema")


def frame_to_named(frame: Any, name: str, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a polars, pandas or Arrow table."""
    if not isinstance(relation, str) or not relation:
        raise FactError(f"expected the name of a relation, found {relation!r}")
    return table_to_named(_to_polars(frame), name, relation, order)


def table_to_named(table: pl.DataFrame, name: str, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a data frame; all cells become text. Errors call the table ``name``."""
    check_header(name, table.columns, "")
    if table.schema.get("roles") == pl.List(pl.String):
        texts = [None if roles is None else json.dumps(roles.to_list()) for roles in table["roles"]]
        table = table.with_columns(pl.Series("roles", texts, dtype=pl.String))

    try:
        with panics_as_errors():
            cells = numbered(_text(name, column) for column in table)
    except Panic as error:
        message = f"expected columns of text, found others ({error})"
        raise FactFileError(name, message) from None

    rows = pl.int_range(1, len(table) + 1, eager=True)
    problems = Problems(name, location=": row {}")
    has_nul = cells.select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series()
    for row in rows.filter(has_nul):
        problems.add(row, "expected text, found a NUL character")
    return columns_to_named(Columns(table.columns, cells, rows, problems), relation, order)


def check_header(path: Path | str, header: Sequence[str], location: str) -> None:
    """Check that every column has a name of its own."""
    counts = Counter(header)
    repeated = next((name for name in header if counts[name] > 1), None)
    if not all(header):
        problem = "an empty one"
    elif repeated is not None:
        problem = f"{repeated!r} twice"
    elif any("\0" in name for name in header):
        problem = "one with NUL in it"
    else:
        return

    message = f"expected a name of its own for every column, found {problem}"
    raise FactFileError(path, [(location, message)])


def _text(table: str, column: pl.Series) -> pl.Series:
    """A column as text, with empty text for null and NaN; a type without a text is refused."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    try:
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Duration):
            raise TypeError
        return column.cast(pl.String).fill_null("")
    except (TypeError, pl.exceptions.PolarsError):
        message = f"expected text in column {column.name!r}, found {column.dtype}"
        raise FactFileError(table, message) from None


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
        message = f"expected a polars, pandas or Arrow table, found {type(frame).__name__}"
        raise FactError(message) from None


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Convert cell by cell, which needs no Arrow."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        repeated = max(names, key=names.count)
        message = f"expected a name of its own for every column, found {repeated!r} twice"
        raise FactError(message)

    columns = []
    for i, name in enumerate(names):
        column = frame.iloc[:, i]
        cells = zip(column, column.isna(), strict=True)
        texts = [None if is_missing else str(cell) for cell, is_missing in cells]
        columns.append(text_series(name, texts))
    return pl.DataFrame(columns)

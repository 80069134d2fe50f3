"""Data frames to named facts: columns of any type become text."""

from __future__ import annotations

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


def frame_to_named(frame: Any, name: str, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a polars, pandas or Arrow table."""
    if not isinstance(relation, str) or not relation:
        raise FactError(f"expected the name of a relation, found {relation!r}")
    return table_to_named(_to_polars(frame), name, relation, order)


def table_to_named(table: pl.DataFrame, name: str, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a data frame; cells that are not text are written as text. ``name`` is how errors call the table."""
    check_header(name, table.columns, "")
    if table.schema.get("roles") == pl.List(pl.String):
        texts = [None if roles is None else json.dumps(roles.to_list()) for roles in table["roles"]]
        table = table.with_columns(pl.Series("roles", texts, dtype=pl.String))
    try:
        with panics_as_errors():
            cells = numbered(pl.DataFrame([_text(name, column) for column in table.get_columns()]))
    except Panic as error:
        raise FactFileError(
            name, [("", f"expected columns of text, found others ({error})")]
        ) from None
    rows = pl.Series("line", range(1, len(table) + 1), dtype=pl.Int64)
    problems = Problems(name, location=": row {}")
    nul = cells.select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series()
    for row in rows.filter(nul).to_list():
        problems.add(row, "expected text, found a NUL character")
    return columns_to_named(Columns(table.columns, cells, rows, problems), relation, order)


def check_header(path: Path | str, header: Sequence[str], place: str) -> None:
    """Every column has a name, and no two the same."""
    counts = Counter(header)
    twice = next((name for name in header if counts[name] > 1), None)
    if not all(header) or twice is not None or any("\0" in name for name in header):
        wrong = (
            "an empty one"
            if not all(header)
            else f"{twice!r} twice"
            if twice is not None
            else "one with NUL in it"
        )
        raise FactFileError(
            path, [(place, f"expected a name of its own for every column, found {wrong}")]
        )


def _text(table: str, column: pl.Series) -> pl.Series:
    """A column as text, the empty text for null and NaN; what has no text is refused."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    try:
        if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Duration):
            raise TypeError
        return column.cast(pl.String).fill_null("")
    except (TypeError, pl.exceptions.PolarsError):
        raise FactFileError(
            table, [("", f"expected text in column {column.name!r}, found {column.dtype}")]
        ) from None


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
        raise FactError(
            f"expected a polars, pandas or Arrow table, found {type(frame).__name__}"
        ) from None


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Cell by cell, so that it needs no Arrow."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise FactError(
            f"expected a name of its own for every column, found {max(names, key=names.count)!r} twice"
        )
    columns = [frame.iloc[:, place] for place in range(len(names))]
    texts = [
        [
            None if missing else str(cell)
            for cell, missing in zip(column, column.isna(), strict=True)
        ]
        for column in columns
    ]
    return pl.DataFrame([text_series(name, text) for name, text in zip(names, texts, strict=True)])

"""Data frames to named facts: columns of any type become text."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from getd.errors import FactError, FactFileError
from getd.facts.columns import Columns, columns_to_named, numbered
from getd.facts.named import NamedFacts, text_series
from getd.facts.role_order import RoleOrder
from getd.io.panics import Panic, panics_as_errors
from getd.io.problems import Problems

# The fraction of a second; the group is what is left of it without the zeros at its end.
_FRACTION = r"(\.\d*[1-9])0*|\.0+"


def is_frame(value: object) -> bool:
    """Whether a value looks like a data frame of some library."""
    # A lazy frame warns when it is asked for its columns.
    return hasattr(value, "collect_schema") or hasattr(value, "columns")


def frame_to_named(frame: Any, name: str, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from a polars, pandas or Arrow table."""
    if not isinstance(relation, str) or not relation:
        raise FactError(f"expected the name of a relation, found {relation!r}")
    return table_to_named(_to_polars(frame, name), name, relation, order)


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


def check_header(path: Path | str, header: Sequence[str], location: str, first: int = 1) -> None:
    """Check that every column has a name of its own; ``first`` is the number of the first one."""
    counts = Counter(header)
    repeated = next((name for name in header if counts[name] > 1), None)
    if not all(header):
        empty = list(header).index("") + first
        problem = f"column {empty} without one; name it or delete it"
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
        is_time = column.dtype == pl.Time  # which a cast would cut at whole seconds
        text = column.dt.to_string("%T%.f") if is_time else column.cast(pl.String)
    except (TypeError, pl.exceptions.PolarsError):
        message = f"expected text in column {column.name!r}, found {column.dtype}"
        raise FactFileError(table, message) from None

    if column.dtype.is_temporal():
        text = text.str.replace(_FRACTION, "${1}")
    return text.fill_null("")


def _to_polars(frame: Any, name: str) -> pl.DataFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(frame, name)
    try:
        return pl.DataFrame(frame)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        message = f"expected a polars, pandas or Arrow table, found {type(frame).__name__}"
        raise FactError(message) from None


def _from_pandas(frame: Any, table: str) -> pl.DataFrame:
    """Convert the columns, after the levels of the index that have a name; this needs no Arrow."""
    columns = []
    for level, name in enumerate(frame.index.names):
        if name is not None:
            columns.append((str(name), frame.index.get_level_values(level).to_series()))
    for i, name in enumerate(frame.columns):
        columns.append((str(name), frame.iloc[:, i]))

    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        repeated = max(names, key=names.count)
        message = f"expected a name of its own for every column, found {repeated!r} twice"
        raise FactError(message)
    return pl.DataFrame([_pandas_column(table, *column) for column in columns])


def _pandas_column(table: str, name: str, column: Any) -> pl.Series:
    """Convert fractions as they are, and other cells one by one to the text that polars has."""
    if column.dtype.kind == "f":
        width = min(max(column.dtype.itemsize, 4), 8)
        return pl.Series(name, column.to_numpy(f"f{width}", na_value=np.nan))

    is_filled = (~column.isna()).tolist()
    cells = [cell if filled else None for cell, filled in zip(column, is_filled, strict=True)]
    types = set(map(type, compress(cells, is_filled)))
    if types == {float}:
        return pl.Series(name, cells, dtype=pl.Float64)
    if types == {Decimal}:
        cells = _decimal_texts(cells)

    texts: list[str | None] = []
    for cell in cells:
        try:
            texts.append(None if cell is None else _cell_text(cell))
        except (TypeError, UnicodeDecodeError):
            message = f"expected text in column {name!r}, found {type(cell).__name__}"
            raise FactFileError(table, message) from None
    return text_series(name, texts)


def _decimal_texts(cells: Iterable[Decimal | None]) -> list[str | None]:
    """Write decimals as a column of them has them: all with as many digits as the longest.

    >>> _decimal_texts([Decimal("1.50"), None, Decimal(2)])
    ['1.50', None, '2.00']
    """
    decimals = list(cells)
    digits = 0
    for cell in decimals:
        if cell is not None and cell.is_finite():
            digits = max(digits, -int(cell.as_tuple().exponent))
    return [None if cell is None else f"{cell:.{digits}f}" for cell in decimals]


def _cell_text(cell: object) -> str:
    if isinstance(cell, bytes):
        return cell.decode()
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    if isinstance(cell, datetime | time):
        return re.sub(_FRACTION, r"\1", str(cell))
    if isinstance(cell, timedelta) or (isinstance(cell, Iterable) and not isinstance(cell, str)):
        raise TypeError
    return str(cell)

"""Facts from tables: CSV with a header, Parquet, and data frames from Python.

A table has a ``relation`` column, or none and then is all of one relation. The other columns are the entities:

- ``e1, e2, …``: positions. A fact may have fewer entities than there are columns; its last cells are then empty.
  A column ``roles`` beside them, where there is one, holds the role names of each fact as a JSON list.
- any other names: roles. A relation has the roles that any of its rows fills, and then every row must fill them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from getd.errors import FactError, FactFileError
from getd.facts.labels import Labels, LabelsBuilder, text_series
from getd.facts.panics import Panic, panics_as_errors
from getd.facts.relation import Roles, default_roles
from getd.facts.source import MAX_LINE, Problems, read_blocks, read_head
from getd.facts.text import read_csv_rows, with_lines


class RoleOrder:
    """What the files of one data set agree on: the order of a relation's roles, and the columns of its tables."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, Roles], Roles] = {}
        self._tables: dict[str, tuple[Roles, str]] = {}
        self._first: tuple[bool, str] | None = None

    def ordered(self, relation: str, roles: Sequence[str]) -> Roles:
        """The roles in the order in which this relation had them first."""
        return self._orders.setdefault((relation, tuple(sorted(roles))), tuple(roles))

    def table_roles(self, relation: str, roles: Sequence[str], path: str) -> Roles:
        """The same, for a table: there a relation has one set of roles."""
        first, where = self._tables.setdefault(relation, (tuple(roles), path))
        if sorted(first) != sorted(roles):
            missing, more = set(first) - set(roles), set(roles) - set(first)
            wrong = f"{min(missing)!r} is missing" if missing else f"{min(more)!r} is there too"
            what = f"for relation {relation!r} the columns {', '.join(first)} as in {where}"
            raise FactFileError(path, [("", f"expected {what}, but {wrong}")])
        return first

    def check_relation_column(self, present: bool, path: str) -> None:
        """All tables of a data set have a relation column, or none has."""
        first, where = self._first = self._first or (present, path)
        if first != present:
            there = "a column 'relation'" if first else "no column 'relation'"
            raise FactFileError(path, [("", f"expected {there} as in {where}, found {'one' if present else 'none'}")])


def read_csv(path: Path, relation: str, order: RoleOrder) -> Labels:
    """Facts from CSV with a header; comma, or semicolon or tab where the header has no comma."""
    header, separator, header_line = csv_header(path)
    problems, parts = Problems(path), []
    may_be_a_fact = len(header) % 2 == 1 and len(header) >= 3 and "relation" not in map(str.lower, header)
    hint = "; for rows without a header there is --format hyper-csv" if may_be_a_fact else ""
    for lines, fields in read_csv_rows(path, separator, problems):
        body = lines > header_line
        if fields.width == len(header):
            parts.append(with_lines(lines, _numbered(fields)).filter(pl.Series(body)))
        else:
            for line in lines[body].tolist():
                problems.add(line, f"expected {len(header)} fields ({', '.join(header)}), found {fields.width}{hint}")
    problems.check()
    if sum(len(part) for part in parts) == 0:
        raise FactFileError(path, [("", "expected rows below the header, found none")])
    table = pl.concat(parts).sort("line")
    cells = table.drop("line").select(pl.all().fill_null(""))
    return _labels(_Table(header, cells, table["line"], problems), relation, order)


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
    twice = next((name for name in header if header.count(name) > 1), None)
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
        with panics_as_errors():
            return column.cast(pl.String).fill_null("")
    except (TypeError, Panic, pl.exceptions.PolarsError):
        raise FactFileError(table, [("", f"expected text in column {column.name!r}, found {column.dtype}")]) from None


def read_parquet(path: Path, relation: str, order: RoleOrder) -> Labels:
    """Facts from a Parquet file."""
    data = io.BytesIO(b"".join(read_blocks(path)))
    try:
        with panics_as_errors():
            table = pl.read_parquet(data)
    except (pl.exceptions.PolarsError, OSError, ValueError, Panic) as error:
        reason = str(error).split("\n")[0]
        raise FactFileError(path, [("", f"expected a whole Parquet file, found a broken one ({reason})")]) from None
    if len(table) == 0:
        raise FactFileError(path, [("", "expected facts, found a table without rows")])
    return table_labels(table, str(path), relation, order)


def table_labels(table: pl.DataFrame, name: str, relation: str, order: RoleOrder) -> Labels:
    """Facts from a data frame; cells that are not text are written as text. ``name`` is how errors call the table."""
    check_header(name, table.columns, "")
    if table.schema.get("roles") == pl.List(pl.String):
        texts = [None if roles is None else json.dumps(roles.to_list()) for roles in table["roles"]]
        table = table.with_columns(pl.Series("roles", texts, dtype=pl.String))
    cells = pl.DataFrame([_text(name, column).alias(str(place)) for place, column in enumerate(table.get_columns())])
    rows = pl.Series("line", range(1, len(table) + 1), dtype=pl.Int64)
    problems = Problems(name, place=": row {}")
    nul = cells.select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series()
    for row in rows.filter(nul).to_list():
        problems.add(row, "expected text, found a NUL character")
    return _labels(_Table(table.columns, cells, rows, problems), relation, order)


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


def _numbered(table: pl.DataFrame) -> pl.DataFrame:
    """The same columns under the names 0, 1, …: those of a user may mean something to polars or to us."""
    return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(table.get_columns())])


@dataclass(frozen=True)
class _Table:
    """Columns of text, the empty text for an empty cell."""

    header: Sequence[str]
    cells: pl.DataFrame  # columns named 0, 1, …
    rows: pl.Series  # the line or row that each stands on
    problems: Problems

    def column(self, name: str) -> str | None:
        """The column of that name, in any case of letters."""
        return next((str(place) for place, other in enumerate(self.header) if other.lower() == name), None)

    def names(self, places: Sequence[str]) -> list[str]:
        """The names of columns."""
        return [self.header[int(place)] for place in places]


def _labels(table: _Table, relation: str, order: RoleOrder) -> Labels:
    column, problems = table.column("relation"), table.problems
    order.check_relation_column(column is not None, str(problems.path))
    names = table.cells[column] if column else pl.Series([relation]).new_from_index(0, len(table.cells))
    for row in table.rows.filter(names == "").to_list():
        problems.add(row, "expected a name in column 'relation', found it empty")
    places = [place for place in table.cells.columns if place != column]
    roles_column = table.column("roles")
    positions = [place for place in places if place != roles_column]
    is_positional = column is not None and set(table.names(positions)) == set(default_roles(len(positions)))
    if is_positional:  # anywhere else, a column 'roles' is a role
        places = sorted(positions, key=lambda place: int(table.header[int(place)][1:]))
    if not places:
        raise FactFileError(problems.path, [("", "expected columns with entities, found none")])
    facts = pl.DataFrame([table.rows.alias("line"), names.alias("relation")])
    entities = _Table(table.names(places), _numbered(table.cells.select(places)), table.rows, problems)
    builder = LabelsBuilder()
    if is_positional:
        _add_positional(builder, facts, entities, table.cells[roles_column] if roles_column else None)
    else:
        _add_by_role(builder, facts, entities, order, every_role=column is None)
    problems.check()
    labels = builder.build()
    if column is None:
        told = f"{problems.path}: no column 'relation', so each row is a fact {relation}({', '.join(entities.header)})"
        return replace(labels, notices=(told,))
    return labels


def _add_positional(
    builder: LabelsBuilder, facts: pl.DataFrame, entities: _Table, signatures: pl.Series | None
) -> None:
    cells, problems = entities.cells, entities.problems
    arity = cells.select(pl.sum_horizontal((pl.all() != "").cast(pl.Int64))).to_series()
    last = pl.max_horizontal(pl.when(pl.col(c) != "").then(int(c) + 1).otherwise(0) for c in cells.columns)
    with_hole = arity < cells.select(last).to_series()
    for row, names in zip(entities.rows.filter(with_hole), cells.filter(with_hole).iter_rows(), strict=True):
        problems.add(row, f"expected a name in every field, found column {entities.header[names.index('')]!r} empty")
    for row, name in facts.filter(arity == 0).iter_rows():
        problems.add(row, f"expected a relation and at least one entity, found only {name!r}")
    if problems.count:
        return
    texts = signatures if signatures is not None else pl.Series([""]).new_from_index(0, len(arity))
    for n, text in pl.DataFrame([arity.alias("n"), texts.alias("text")]).unique(maintain_order=True).iter_rows():
        chosen = (arity == n) & (texts == text)
        roles = _parse_roles(text, n) if text else default_roles(n)
        if roles is None:
            for row in entities.rows.filter(chosen).to_list():
                problems.add(row, f"expected a JSON list of {n} role names in column 'roles', found {text!r}")
        else:
            builder.add(roles, facts.filter(chosen).hstack(cells.filter(chosen).get_columns()[:n]))


def _parse_roles(text: str, arity: int) -> Roles | None:
    try:
        roles = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(roles, list) or len(roles) != arity or not all(isinstance(r, str) and r for r in roles):
        return None
    return tuple(roles)


def _add_by_role(
    builder: LabelsBuilder, facts: pl.DataFrame, entities: _Table, order: RoleOrder, every_role: bool
) -> None:
    """A relation has the roles that any of its rows fills, or all of them."""
    problems, place_of = entities.problems, {name: str(place) for place, name in enumerate(entities.header)}
    filled = entities.cells.select(pl.all() != "").with_columns(facts["relation"])
    by_roles: dict[Roles, list[str]] = {}
    for name, *flags in filled.group_by("relation", maintain_order=True).agg(pl.all().any()).iter_rows():
        found = [role for role, flag in zip(entities.header, flags, strict=True) if flag or every_role]
        by_roles.setdefault(order.table_roles(name, found, str(problems.path)) if found else (), []).append(name)
    for roles, names in by_roles.items():
        chosen = facts["relation"].is_in(names)
        part, cells = facts.filter(chosen), entities.cells.filter(chosen).select([place_of[role] for role in roles])
        for row, name in part.iter_rows() if not roles else ():
            problems.add(row, f"expected a relation and at least one entity, found only {name!r}")
        for (row, name), values in zip(part.iter_rows(), cells.iter_rows(), strict=True) if _has_empty(cells) else ():
            if "" in values:
                role = roles[values.index("")]
                problems.add(row, f"expected a name in column {role!r} of relation {name!r}, found it empty")
        if roles:
            builder.add(roles, part.hstack(_numbered(cells).get_columns()))


def _has_empty(cells: pl.DataFrame) -> bool:
    return any(bool((column == "").any()) for column in cells)

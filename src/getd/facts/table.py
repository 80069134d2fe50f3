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
from pathlib import Path
from typing import Any

import polars as pl

from getd.errors import FactError, FactFileError
from getd.facts.labels import Labels, LabelsBuilder
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
            fields = fields.rename(dict(zip(fields.columns, header, strict=True)))
            parts.append(with_lines(lines, fields).filter(pl.Series(body)))
        else:
            for line in lines[body].tolist():
                problems.add(line, f"expected {len(header)} fields ({', '.join(header)}), found {fields.width}{hint}")
    problems.check()
    if sum(len(part) for part in parts) == 0:
        raise FactFileError(path, [("", "expected rows below the header, found none")])
    table = pl.concat(parts).sort("line").with_columns(pl.all().exclude("line").fill_null(""))
    return _labels(table.drop("line"), table["line"], problems, relation, order)


def csv_header(path: Path) -> tuple[list[str], str, int]:
    """The column names of a CSV file, what separates them, and the line on which the header ends."""
    text = read_head(path, 4 * MAX_LINE).decode("utf-8", errors="replace")
    skipped = len(text) - len(text.lstrip("\r\n"))
    first = text[skipped:].split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in first), ",")
    header = [name.strip() for name in next(csv.reader([first.rstrip("\r")], delimiter=separator), [])]
    line = text[:skipped].count("\n") + 1
    if "" in header or len(set(header)) < len(header):
        wrong = "an empty one" if "" in header else f"{next(n for n in header if header.count(n) > 1)!r} twice"
        raise FactFileError(path, [(f":{line}", f"expected a name of its own for every column, found {wrong}")])
    return header, separator, line


def read_parquet(path: Path, relation: str, order: RoleOrder) -> Labels:
    """Facts from a Parquet file."""
    try:
        table = pl.read_parquet(io.BytesIO(b"".join(read_blocks(path))))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise FactFileError(path, [("", f"expected a whole Parquet file, found a broken one ({reason})")]) from None
    if len(table) == 0:
        raise FactFileError(path, [("", "expected facts, found a table without rows")])
    return table_labels(table, str(path), relation, order)


def table_labels(table: pl.DataFrame, name: str, relation: str, order: RoleOrder) -> Labels:
    """Facts from a data frame; cells that are not text are written as text. ``name`` is how errors call the table."""
    for column, dtype in table.schema.items():
        if dtype.is_nested() and not (column == "roles" and dtype == pl.List(pl.String)):
            raise FactFileError(name, [("", f"expected text in column {column!r}, found {dtype}")])
    if table.schema.get("roles") == pl.List(pl.String):
        table = table.with_columns(
            pl.Series("roles", [None if r is None else json.dumps(list(r)) for r in table["roles"]], dtype=pl.String)
        )
    table = table.select(pl.all().cast(pl.String).fill_null(""))
    rows = pl.Series("line", range(1, len(table) + 1), dtype=pl.Int64)
    problems = Problems(name, place=": row {}")
    nul = table.select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series()
    for row in rows.filter(nul).to_list():
        problems.add(row, "expected text, found a NUL character")
    return _labels(table, rows, problems, relation, order)


def frame_labels(frame: Any, relation: str) -> Labels:
    """Facts from a polars, pandas or Arrow table."""
    return table_labels(_to_polars(frame), "the data frame", relation, RoleOrder())


def _to_polars(frame: Any) -> pl.DataFrame:
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":  # cell by cell: needs no Arrow
        text = {
            str(name): [None if cell is None or cell != cell else str(cell) for cell in frame[name]]
            for name in frame.columns
        }
        return pl.DataFrame(text, schema=dict.fromkeys(text, pl.String))
    try:
        return pl.DataFrame(frame)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise FactError(f"expected a polars, pandas or Arrow table, found {type(frame).__name__}") from None


def _labels(table: pl.DataFrame, rows: pl.Series, problems: Problems, relation: str, order: RoleOrder) -> Labels:
    relation_column = next((name for name in table.columns if name.lower() == "relation"), None)
    order.check_relation_column(relation_column is not None, str(problems.path))
    names = table[relation_column] if relation_column else pl.Series([relation]).new_from_index(0, len(table))
    entities = table.drop(relation_column) if relation_column else table
    for row in rows.filter(names == "").to_list():
        problems.add(row, f"expected a name in column {relation_column!r}, found it empty")
    signatures = entities["roles"] if relation_column and "roles" in entities.columns else None
    if signatures is not None:
        entities = entities.drop("roles")
    if entities.width == 0:
        raise FactFileError(problems.path, [("", "expected columns with entities, found none")])
    facts = pl.DataFrame([rows.alias("line"), names.alias("relation")])
    builder = LabelsBuilder()
    if relation_column and tuple(entities.columns) == default_roles(entities.width):
        _add_positional(builder, facts, entities, signatures, problems)
    else:
        _add_by_role(builder, facts, entities, problems, order)
    problems.check()
    return builder.build()


def _add_positional(
    builder: LabelsBuilder,
    facts: pl.DataFrame,
    entities: pl.DataFrame,
    signatures: pl.Series | None,
    problems: Problems,
) -> None:
    filled = entities.select(pl.sum_horizontal((pl.all() != "").cast(pl.Int64))).to_series()
    last = entities.select(
        pl.max_horizontal(pl.when(pl.col(c) != "").then(i + 1).otherwise(0) for i, c in enumerate(entities.columns))
    )
    for row, names in zip(
        facts["line"].filter(filled < last.to_series()),
        entities.filter(filled < last.to_series()).iter_rows(),
        strict=True,
    ):
        problems.add(row, f"expected a name in every field, found column {entities.columns[names.index('')]!r} empty")
    for row, name in facts.filter(filled == 0).select("line", "relation").iter_rows():
        problems.add(row, f"expected a relation and at least one entity, found only {name!r}")
    if problems.count:
        return
    keys = pl.DataFrame(
        [filled.alias("arity"), (signatures if signatures is not None else filled.cast(pl.String)).alias("roles")]
    )
    for arity, text in keys.unique(maintain_order=True).iter_rows():
        chosen = (keys["arity"] == arity) & (keys["roles"] == text)
        roles = default_roles(arity) if signatures is None or text == "" else _parse_roles(text, arity)
        if roles is None:
            for row in facts["line"].filter(chosen).to_list():
                problems.add(row, f"expected a JSON list of {arity} role names in column 'roles', found {text!r}")
            continue
        builder.add(
            roles, facts.filter(chosen).hstack(entities.filter(chosen).select(entities.columns[:arity]).get_columns())
        )


def _parse_roles(text: str, arity: int) -> Roles | None:
    try:
        roles = json.loads(text)
    except ValueError:
        return None
    if not isinstance(roles, list) or len(roles) != arity or not all(isinstance(r, str) and r for r in roles):
        return None
    together = sum(here != before for here, before in zip(roles, [None, *roles], strict=False)) == len(set(roles))
    return tuple(roles) if together else None  # a role that stands twice stands so in one place


def _add_by_role(
    builder: LabelsBuilder, facts: pl.DataFrame, entities: pl.DataFrame, problems: Problems, order: RoleOrder
) -> None:
    filled = entities.select(pl.all() != "").with_columns(facts["relation"].alias("\0relation"))
    used = filled.group_by("\0relation", maintain_order=True).agg(pl.all().any())
    by_roles: dict[Roles, list[str]] = {}
    for name, *flags in used.iter_rows():
        found = tuple(column for column, flag in zip(entities.columns, flags, strict=True) if flag)
        by_roles.setdefault(order.table_roles(name, found, str(problems.path)), []).append(name)
    for roles, names in by_roles.items():
        chosen = facts["relation"].is_in(names)
        part, cells = facts.filter(chosen), entities.filter(chosen).select(roles)
        if not roles:
            for row, name in part.select("line", "relation").iter_rows():
                problems.add(row, f"expected a relation and at least one entity, found only {name!r}")
            continue
        empty = cells.select(pl.any_horizontal(pl.all() == "")).to_series()
        for row, name, values in zip(
            part["line"].filter(empty), part["relation"].filter(empty), cells.filter(empty).iter_rows(), strict=True
        ):
            problems.add(
                row, f"expected a name in column {roles[values.index('')]!r} of relation {name!r}, found it empty"
            )
        builder.add(roles, part.hstack(cells.get_columns()))

"""Columns of text to facts: which column is the relation, which are positions or roles.

All cells become numbers first; from then on facts are rows of numbers. So the work grows with the
number of cells, however many relations, roles and arities there are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from getd.arrays import Bools, Ids, find_sorted
from getd.errors import FactFileError
from getd.facts.named import Codes, NamedFacts, NamedFactsBuilder, new_block
from getd.facts.relation import Roles, default_roles
from getd.facts.role_order import RoleOrder
from getd.io.problems import Problems
from getd.visible import shorten


def numbered(table: pl.DataFrame) -> pl.DataFrame:
    """Rename the columns to 0, 1, …: a user's names may have a meaning for polars or for us."""
    columns = enumerate(table.get_columns())
    return pl.DataFrame([column.alias(str(index)) for index, column in columns])


@dataclass(frozen=True)
class Columns:
    """Columns of text; an empty cell is the empty text."""

    header: Sequence[str]
    cells: pl.DataFrame  # columns named 0, 1, …
    rows: pl.Series  # the line or row of each fact
    problems: Problems

    def find(self, name: str) -> int | None:
        """The index of the column of that name, in any letter case."""
        header = [column.lower() for column in self.header]
        return header.index(name) if name in header else None

    def select(self, indices: Sequence[int]) -> Columns:
        """Select columns, in the given order."""
        cells = pl.DataFrame([self.cells.to_series(i) for i in indices])
        return replace(self, header=[self.header[i] for i in indices], cells=numbered(cells))


def columns_to_named(table: Columns, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from columns; ``relation`` is the name of all facts if no column holds one."""
    problems = table.problems
    relation_column = table.find("relation")
    order.check_relation_column(relation_column is not None, str(problems.path))
    if relation_column is None:
        names = pl.Series([relation]).new_from_index(0, len(table.cells))
    else:
        names = table.cells.to_series(relation_column)
    for row in table.rows.filter(names == "").to_list():
        problems.add(row, "expected a name in column 'relation', found it empty")

    # Columns e1, e2, … are positions, and a column 'roles' describes them. Otherwise all are roles.
    columns = [i for i in range(len(table.header)) if i != relation_column]
    roles_column = table.find("roles")
    positions = [i for i in columns if i != roles_column]
    expected = set(default_roles(len(positions)))
    is_positional = relation_column is not None and {table.header[i] for i in positions} == expected
    if is_positional:
        columns = sorted(positions, key=lambda i: int(table.header[i][1:]))
    if not columns:
        raise FactFileError(problems.path, [("", "expected columns with entities, found none")])

    builder = NamedFactsBuilder()
    entities = table.select(columns)
    if is_positional:
        roles = None if roles_column is None else table.cells.to_series(roles_column)
        _add_positional(builder, names, entities, roles)
    else:
        _add_by_role(builder, names, entities, order, every_role=relation_column is None)
    problems.check()

    named = builder.build()
    if relation_column is None:
        fact = f"{relation}({', '.join(entities.header)})"
        notice = f"{problems.path}: no column 'relation', so each row is a fact {fact}"
        return replace(named, notices=(notice,))
    return named


def _add_positional(
    builder: NamedFactsBuilder, names: pl.Series, entities: Columns, role_lists: pl.Series | None
) -> None:
    """Add facts whose columns are positions; a row may list its roles, as JSON."""
    rows = entities.rows.to_numpy()
    codes, empty = _codes(builder, entities)
    filled = codes != empty
    arity = filled.sum(axis=1)

    # Rows may be shorter than the table, but have no holes.
    width = filled.shape[1]
    end = np.where(arity > 0, width - filled[:, ::-1].argmax(axis=1), 0)
    holes = ~filled & (np.arange(width) < end[:, None])
    for i, column in _first_holes(holes):
        name = entities.header[column]
        message = f"expected a name in every field, found column {name!r} empty"
        entities.problems.add(int(rows[i]), message)
    _report_empty(names, entities, arity == 0)
    if entities.problems.count:
        return

    if role_lists is None:
        role_lists = pl.Series([""]).new_from_index(0, len(arity))
    described = pl.DataFrame([pl.Series("arity", arity), role_lists.alias("roles")])
    signature = _signatures(builder, described, rows, entities.problems)
    relation = builder.relation_codes(names)
    for n in np.unique(arity).tolist():
        own = np.flatnonzero(arity == n)
        builder.add_block(new_block(rows[own], relation[own], signature[own], codes[own, :n]))


def _signatures(
    builder: NamedFactsBuilder, described: pl.DataFrame, rows: Ids, problems: Problems
) -> Codes:
    """The signature of each row from its arity and its list of roles, which may be empty."""
    distinct = described.unique(maintain_order=True).with_row_index("kind")
    joined = described.join(distinct, on=["arity", "roles"], how="left", maintain_order="left")
    kind = joined["kind"].to_numpy()

    signatures = np.zeros(len(distinct), dtype=np.uint32)
    is_wrong = np.zeros(len(distinct), dtype=bool)
    for number, arity, text in distinct.iter_rows():
        roles = _parse_roles(text, arity) if text else default_roles(arity)
        if roles is None:
            is_wrong[number] = True
        else:
            signatures[number] = builder.signature(roles)

    for i in np.flatnonzero(is_wrong[kind]).tolist():
        arity, text = described.row(i)
        expected = f"a JSON list of {arity} role names in column 'roles'"
        problems.add(int(rows[i]), f"expected {expected}, found {shorten(text)!r}")
    codes: Codes = signatures[kind]
    return codes


def _parse_roles(text: str, arity: int) -> Roles | None:
    try:
        roles = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(roles, list) or len(roles) != arity:
        return None
    if not all(isinstance(role, str) and role for role in roles):
        return None
    return tuple(roles)


def _add_by_role(
    builder: NamedFactsBuilder,
    names: pl.Series,
    entities: Columns,
    order: RoleOrder,
    every_role: bool,
) -> None:
    """Add facts whose columns are roles: those that any row of a relation fills, or all."""
    rows = entities.rows.to_numpy()
    codes, empty = _codes(builder, entities)
    relation = builder.relation_codes(names)
    first_row, kind = _first_rows(relation)
    filled = np.ones((len(first_row), codes.shape[1]), dtype=bool)
    if not every_role:
        filled = _any_by_group(codes != empty, kind, len(first_row))

    # A kind is a relation: the roles that it has, and the columns that hold them.
    column_of = {name: column for column, name in enumerate(entities.header)}
    roles_of: list[Roles] = []
    columns_of: list[list[int]] = []
    for name, is_filled in zip(names.gather(first_row), filled, strict=True):
        present = [entities.header[i] for i in np.flatnonzero(is_filled).tolist()]
        path = str(entities.problems.path)
        roles = order.table_roles(name, present, path) if present else ()
        roles_of.append(roles)
        columns_of.append([column_of[role] for role in roles])
    signature = np.array([builder.signature(roles) for roles in roles_of], dtype=np.uint32)
    arity = np.array([len(roles) for roles in roles_of])
    _report_empty(names, entities, arity[kind] == 0)

    # One arity at a time, put the cells of each row in the order of its roles.
    for n in sorted({*arity.tolist()} - {0}):
        kinds = np.flatnonzero(arity == n)
        columns = np.array([columns_of[i] for i in kinds])
        own = np.flatnonzero(arity[kind] == n)
        own_columns = columns[find_sorted(kinds, kind[own])]
        cells = np.take_along_axis(codes[own], own_columns, axis=1)
        builder.add_block(new_block(rows[own], relation[own], signature[kind[own]], cells))

        for i, position in _first_holes(cells == empty):
            row = int(own[i])
            column = f"column {roles_of[kind[row]][position]!r} of relation {names[row]!r}"
            message = f"expected a name in {column}, found it empty"
            entities.problems.add(int(rows[row]), message)


def _report_empty(names: pl.Series, entities: Columns, is_empty: Bools) -> None:
    """Report rows without any entity."""
    for i in np.flatnonzero(is_empty).tolist():
        message = f"expected a relation and at least one entity, found only {names[i]!r}"
        entities.problems.add(int(entities.rows[i]), message)


def _first_holes(holes: Bools) -> list[tuple[int, int]]:
    """The rows with a hole, each with the column of its first hole."""
    rows = np.flatnonzero(holes.any(axis=1))
    return list(zip(rows.tolist(), holes[rows].argmax(axis=1).tolist(), strict=True))


def _codes(builder: NamedFactsBuilder, entities: Columns) -> tuple[Codes, int]:
    """The codes of all cells, and the code of the empty text."""
    codes = builder.entity_table(entities.cells.get_columns())
    return codes, int(builder.entity_codes(pl.Series([""]))[0])


def _first_rows(values: Codes) -> tuple[Ids, Ids]:
    """Where each distinct value occurs first, ascending, and which of these each value is."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.reshape(-1)]


def _any_by_group(flags: Bools, groups: Ids, n_groups: int) -> Bools:
    """The columns in which any row of a group has a flag; no group is without rows."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(n_groups))
    return np.logical_or.reduceat(flags[order], starts, axis=0)

"""Columns of text to facts: which column is the relation, which are positions or roles.

All cells become numbers first; from then on facts are rows of numbers. So the work grows with the
number of cells, however many relations, roles and arities there are.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Self

import numpy as np
import polars as pl

from getd.arrays import Bools, Ids
from getd.errors import FactFileError
from getd.facts.named import EMPTY, NamedFacts, NamedFactsBuilder, new_block
from getd.facts.odd_cells import cell_notices
from getd.facts.relation import Roles, default_roles
from getd.facts.role_order import RoleOrder
from getd.io.problems import Problems
from getd.visible import shorten


def numbered(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Call columns 0, 1, …: a user's names may have a meaning for polars or for us."""
    return pl.DataFrame({str(index): column for index, column in enumerate(columns)})


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

    def select(self, indices: Sequence[int]) -> Self:
        header = [self.header[i] for i in indices]
        return replace(self, header=header, cells=numbered(self.cells[:, indices]))


def columns_to_named(table: Columns, relation: str, order: RoleOrder) -> NamedFacts:
    """Facts from columns; ``relation`` is the name of all facts if no column holds one."""
    problems = table.problems
    relation_column = table.find("relation")
    order.check_relation_column(relation_column is not None, str(problems.path))
    if relation_column is None:
        names = pl.Series([relation]).new_from_index(0, len(table.cells))
    else:
        names = table.cells[:, relation_column]
    for row in table.rows.filter(names == ""):
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
        raise FactFileError(problems.path, "expected columns with entities, found none")

    builder = NamedFactsBuilder()
    entities = table.select(columns)
    if is_positional:
        roles = "" if roles_column is None else table.cells[:, roles_column]
        _add_positional(builder, names, entities, roles)
    else:
        _add_by_role(builder, names, entities, order, every_role=relation_column is None)
    problems.check()

    notices = list(cell_notices(entities.cells))
    if relation_column is None:
        fact = f"{relation}({', '.join(entities.header)})"
        notices.insert(0, f"no column 'relation', so each row is a fact {fact}")
    texts = tuple(f"{problems.path}: {notice}" for notice in notices)
    return replace(builder.build(), notices=texts, has_relations=relation_column is not None)


def _add_positional(
    builder: NamedFactsBuilder, names: pl.Series, entities: Columns, role_lists: pl.Series | str
) -> None:
    """Add facts whose columns are positions; a row may list its roles, as JSON."""
    problems = entities.problems
    rows = entities.rows
    codes = builder.entity_table(entities.cells.get_columns())
    is_empty = codes == EMPTY
    arity = (~is_empty).sum(axis=1)

    # Rows may be shorter than the table, but have no holes: sorted, they have filled cells first.
    for i, column in _first_holes(is_empty & ~np.sort(is_empty, axis=1)):
        name = entities.header[column]
        message = f"expected a name in every field, found column {name!r} empty"
        problems.add(rows[i], message)
    _report_empty(names, entities, arity == 0)
    if problems.count:
        return

    # A kind is an arity with a list of roles, which may be empty.
    kinds, kind = _number_rows(pl.DataFrame({"arity": arity, "roles": role_lists}))
    roles_of = [_parse_roles(text, n) for n, text in kinds.iter_rows()]
    is_wrong = np.array([roles is None for roles in roles_of])
    for i in np.flatnonzero(is_wrong[kind]).tolist():
        n, text = kinds.row(kind[i])
        expected = f"a JSON list of {n} role names in column 'roles'"
        problems.add(rows[i], f"expected {expected}, found {shorten(text)!r}")

    relation = builder.relations.codes(names)
    signature = builder.signature_codes(roles or () for roles in roles_of)[kind]
    for n in np.unique(arity).tolist():
        own = np.flatnonzero(arity == n)
        own_rows = rows[own].to_numpy()
        builder.add_block(new_block(own_rows, relation[own], signature[own], codes[own, :n]))


def _parse_roles(text: str, arity: int) -> Roles | None:
    if not text:
        return default_roles(arity)
    try:
        roles = json.loads(text)
    except (ValueError, RecursionError):
        return None
    has_roles = isinstance(roles, list) and len(roles) == arity
    is_sound = has_roles and all(isinstance(role, str) and role for role in roles)
    return tuple(roles) if is_sound else None


def _add_by_role(
    builder: NamedFactsBuilder,
    names: pl.Series,
    entities: Columns,
    order: RoleOrder,
    every_role: bool,
) -> None:
    """Add facts whose columns are roles: those that any row of a relation fills, or all."""
    problems = entities.problems
    rows = entities.rows
    codes = builder.entity_table(entities.cells.get_columns())
    relation = builder.relations.codes(names)

    # A kind is a relation: the roles that it has, and the columns that hold them.
    _, kind = _number_rows(names.to_frame("relation"))
    cells = entities.cells.with_columns(names.alias("relation"))
    kinds = cells.group_by("relation", maintain_order=True).agg((pl.all() != "").any())
    column_of = {name: column for column, name in enumerate(entities.header)}
    roles_of: list[Roles] = []
    columns = np.zeros((len(kinds), codes.shape[1]), dtype=np.int64)
    for name, *filled in kinds.iter_rows():
        present = entities.header if every_role else list(compress(entities.header, filled))
        roles = order.table_roles(name, present, str(problems.path)) if present else ()
        columns[len(roles_of), : len(roles)] = [column_of[role] for role in roles]
        roles_of.append(roles)
    arity = np.array([len(roles) for roles in roles_of])[kind]
    signature = builder.signature_codes(roles_of)[kind]
    _report_empty(names, entities, arity == 0)

    # One arity at a time, put the cells of each row in the order of its roles.
    for n in np.unique(arity[arity > 0]).tolist():
        own = np.flatnonzero(arity == n)
        cells_of = np.take_along_axis(codes[own], columns[kind[own], :n], axis=1)
        own_rows = rows[own].to_numpy()
        builder.add_block(new_block(own_rows, relation[own], signature[own], cells_of))

        for i, position in _first_holes(cells_of == EMPTY):
            row = int(own[i])
            column = f"column {roles_of[kind[row]][position]!r} of relation {names[row]!r}"
            problems.add(rows[row], f"expected a name in {column}, found it empty")


def _report_empty(names: pl.Series, entities: Columns, is_empty: Bools) -> None:
    for i in np.flatnonzero(is_empty).tolist():
        message = f"expected a relation and at least one entity, found only {names[i]!r}"
        entities.problems.add(entities.rows[i], message)


def _first_holes(holes: Bools) -> Iterator[tuple[int, int]]:
    """The rows with a hole, each with the column of its first hole."""
    rows = np.flatnonzero(holes.any(axis=1))
    return zip(rows.tolist(), holes[rows].argmax(axis=1).tolist(), strict=True)


def _number_rows(table: pl.DataFrame) -> tuple[pl.DataFrame, Ids]:
    """The distinct rows, in the order of their first appearance, and which of these each row is."""
    distinct = table.unique(maintain_order=True)
    numbered_rows = distinct.with_row_index("number")
    joined = table.join(numbered_rows, on=table.columns, how="left", maintain_order="left")
    return distinct, joined["number"].to_numpy()

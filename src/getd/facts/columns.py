"""Columns of text to facts: which column is the relation, which are positions or roles.

All cells are numbered first; from then on facts are rows of numbers, so that the work grows with the cells, whatever
the number of relations, of roles and of arities.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.arrays import Ids
from getd.errors import FactFileError
from getd.facts.named import Codes, NamedFacts, NamedFactsBuilder, new_block
from getd.facts.relation import Roles, default_roles
from getd.facts.role_order import RoleOrder
from getd.io.problems import Problems
from getd.visible import shorten


def numbered(table: pl.DataFrame) -> pl.DataFrame:
    """The same columns under the names 0, 1, …: those of a user may mean something to polars or to us."""
    return pl.DataFrame(
        [column.alias(str(place)) for place, column in enumerate(table.get_columns())]
    )


@dataclass(frozen=True)
class Columns:
    """Columns of text, the empty text for an empty cell."""

    header: Sequence[str]
    cells: pl.DataFrame  # columns named 0, 1, …
    rows: pl.Series  # the line or row that each stands on
    problems: Problems

    def column(self, name: str) -> str | None:
        """The column of that name, in any case of letters."""
        return next(
            (str(place) for place, other in enumerate(self.header) if other.lower() == name), None
        )

    def names(self, places: Sequence[str]) -> list[str]:
        """The names of columns."""
        return [self.header[int(place)] for place in places]


def columns_to_named(table: Columns, relation: str, order: RoleOrder) -> NamedFacts:
    column, problems = table.column("relation"), table.problems
    order.check_relation_column(column is not None, str(problems.path))
    names = (
        table.cells[column] if column else pl.Series([relation]).new_from_index(0, len(table.cells))
    )
    for row in table.rows.filter(names == "").to_list():
        problems.add(row, "expected a name in column 'relation', found it empty")
    places = [place for place in table.cells.columns if place != column]
    roles_column = table.column("roles")
    positions = [place for place in places if place != roles_column]
    is_positional = column is not None and set(table.names(positions)) == set(
        default_roles(len(positions))
    )
    if is_positional:  # anywhere else, a column 'roles' is a role
        places = sorted(positions, key=lambda place: int(table.header[int(place)][1:]))
    if not places:
        raise FactFileError(problems.path, [("", "expected columns with entities, found none")])
    facts = pl.DataFrame([table.rows.alias("line"), names.alias("relation")])
    entities = Columns(
        table.names(places), numbered(table.cells.select(places)), table.rows, problems
    )
    builder = NamedFactsBuilder()
    if is_positional:
        _add_positional(
            builder, facts, entities, table.cells[roles_column] if roles_column else None
        )
    else:
        _add_by_role(builder, facts, entities, order, every_role=column is None)
    problems.check()
    labels = builder.build()
    if column is None:
        told = f"{problems.path}: no column 'relation', so each row is a fact {relation}({', '.join(entities.header)})"
        return replace(labels, notices=(told,))
    return labels


def _add_positional(
    builder: NamedFactsBuilder, facts: pl.DataFrame, entities: Columns, signatures: pl.Series | None
) -> None:
    """Facts whose columns are positions; their roles, where a column has them, are a JSON list."""
    problems, rows = entities.problems, entities.rows.to_numpy()
    codes, empty = _codes(builder, entities.cells)
    filled = codes != empty
    arity = filled.sum(axis=1)
    width = filled.shape[1]
    last = np.where(arity > 0, width - filled[:, ::-1].argmax(axis=1), 0)
    with_hole = np.flatnonzero(arity < last)
    for place, column in zip(
        with_hole.tolist(), (~filled[with_hole]).argmax(axis=1).tolist(), strict=True
    ):
        name = entities.header[column]
        problems.add(
            int(rows[place]), f"expected a name in every field, found column {name!r} empty"
        )
    for row, name in facts.filter(pl.Series(arity == 0)).iter_rows():
        problems.add(row, f"expected a relation and at least one entity, found only {name!r}")
    if problems.count:
        return
    texts = signatures if signatures is not None else pl.Series([""]).new_from_index(0, len(arity))
    signature = _signatures(
        builder, pl.DataFrame([pl.Series("n", arity), texts.alias("text")]), rows, problems
    )
    relation = builder.relation_codes(facts["relation"])
    for n in np.unique(arity).tolist():
        chosen = np.flatnonzero(arity == n)
        builder.add_block(
            new_block(rows[chosen], relation[chosen], signature[chosen], codes[chosen, :n])
        )


def _signatures(
    builder: NamedFactsBuilder, given: pl.DataFrame, rows: Ids, problems: Problems
) -> Codes:
    """The signature of each row from its arity and the text of its roles; a text that is none is a problem."""
    distinct = given.unique(maintain_order=True).with_row_index("number")
    which = given.join(distinct, on=["n", "text"], how="left", maintain_order="left")[
        "number"
    ].to_numpy()
    numbers = np.zeros(len(distinct), dtype=np.uint32)
    is_wrong = np.zeros(len(distinct), dtype=bool)
    for number, n, text in distinct.iter_rows():
        roles = _parse_roles(text, n) if text else default_roles(n)
        if roles is None:
            is_wrong[number] = True
        else:
            numbers[number] = builder.signature(roles)
    for place in np.flatnonzero(is_wrong[which]).tolist():
        n, text = given.row(place)
        told = f"expected a JSON list of {n} role names in column 'roles', found {shorten(text)!r}"
        problems.add(int(rows[place]), told)
    signatures: Codes = numbers[which]
    return signatures


def _parse_roles(text: str, arity: int) -> Roles | None:
    try:
        roles = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(roles, list)
        or len(roles) != arity
        or not all(isinstance(r, str) and r for r in roles)
    ):
        return None
    return tuple(roles)


def _add_by_role(
    builder: NamedFactsBuilder,
    facts: pl.DataFrame,
    entities: Columns,
    order: RoleOrder,
    every_role: bool,
) -> None:
    """A relation has the roles that any of its rows fills, or all of them."""
    problems, rows = entities.problems, entities.rows.to_numpy()
    codes, empty = _codes(builder, entities.cells)
    relation = builder.relation_codes(facts["relation"])
    first, which = _first_rows(relation)
    filled = np.ones((len(first), codes.shape[1]), dtype=bool)
    if not every_role:
        filled = _any_by_group(codes != empty, which, len(first))

    roles_of: list[Roles] = []
    for name, flags in zip(facts["relation"].gather(first), filled, strict=True):
        roles = [entities.header[place] for place in np.flatnonzero(flags).tolist()]
        roles_of.append(order.table_roles(name, roles, str(problems.path)) if roles else ())

    place_of = {name: place for place, name in enumerate(entities.header)}
    signature = np.array([builder.signature(roles) for roles in roles_of], dtype=np.uint32)
    arity = np.array([len(roles) for roles in roles_of])
    for place in np.flatnonzero(arity[which] == 0).tolist():
        name = facts["relation"][place]
        problems.add(
            int(rows[place]), f"expected a relation and at least one entity, found only {name!r}"
        )

    for n in sorted({*arity.tolist()} - {0}):
        own, kind = _renumbered(arity == n, which)
        chosen = np.flatnonzero(kind >= 0)
        places = np.array([[place_of[role] for role in roles_of[number]] for number in own])
        names = np.take_along_axis(codes[chosen], places[kind[chosen]], axis=1)
        for row, column in zip(*_first_holes(names == empty), strict=True):
            role, name = roles_of[which[chosen[row]]][column], facts["relation"][int(chosen[row])]
            told = f"expected a name in column {role!r} of relation {name!r}, found it empty"
            problems.add(int(rows[chosen[row]]), told)
        builder.add_block(
            new_block(rows[chosen], relation[chosen], signature[which[chosen]], names)
        )


def _renumbered(chosen: npt.NDArray[np.bool_], which: Ids) -> tuple[list[int], Ids]:
    """The chosen numbers, and the place of each of ``which`` among them, -1 where it is not chosen."""
    places = np.where(chosen, np.cumsum(chosen) - 1, -1)
    return np.flatnonzero(chosen).tolist(), places[which]


def _first_holes(holes: npt.NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """The rows with a hole, and the column of the first in each."""
    rows = np.flatnonzero(holes.any(axis=1))
    return rows.tolist(), holes[rows].argmax(axis=1).tolist()


def _codes(builder: NamedFactsBuilder, cells: pl.DataFrame) -> tuple[Codes, int]:
    """The numbers of the names in all cells, and the number of the empty text."""
    return builder.entity_table(cells.get_columns()), int(builder.entity_codes(pl.Series([""]))[0])


def _first_rows(values: Codes) -> tuple[Ids, Ids]:
    """Where each distinct value stands first, ascending, and which of these each value is."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return first[order], number[inverse.reshape(-1)]


def _any_by_group(
    flags: npt.NDArray[np.bool_], groups: Ids, n_groups: int
) -> npt.NDArray[np.bool_]:
    """For each group which columns have a flag in any of its rows; no group is without rows."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(n_groups))
    return np.logical_or.reduceat(flags[order], starts, axis=0)

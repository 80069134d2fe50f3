"""Facts as they stand in a file: names, in the order of the lines, one table per role signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import polars as pl

from getd.errors import FactError
from getd.facts.relation import Roles

ROW, RELATION, ARRANGEMENT = "row", "relation", "arrangement"
BATCH = 100_000  # rows gathered in Python before they become columns

# one fact on its way in: row (a number that orders the facts of a file), relation, entities, and how far its
# entities were rearranged into canonical order (0: they stood so)
Row = tuple[int, str, Sequence[str], int]


@dataclass(frozen=True)
class Labels:
    """Facts with their names.

    ``blocks[roles]`` holds the facts of one role signature: columns ``row`` (orders the facts over all blocks),
    ``relation``, the entities ``"0" .. "n-1"``, all categorical, and, where a reader put qualifiers into canonical
    order, ``arrangement`` (0 for facts that stood so already).
    """

    blocks: Mapping[Roles, pl.DataFrame]
    notices: tuple[str, ...] = ()  # what a user should be told about how they were read

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def select(self, keep: Iterable[Roles]) -> Labels:
        """Only the facts of these signatures."""
        return Labels(MappingProxyType({roles: self.blocks[roles] for roles in keep}), self.notices)

    def rows_from(self, number: int) -> list[tuple[int, str]]:
        """Row and relation of the first ``number`` facts of every block."""
        return [pair for block in self.blocks.values() for pair in block.head(number).select(ROW, RELATION).iter_rows()]

    def rows(self) -> list[tuple[str, ...]]:
        """Every fact as ``(relation, entity, …)``, in order; for small data and for tests."""
        numbered = [
            (row, fact)
            for roles, block in self.blocks.items()
            for row, *fact in block.select(ROW, RELATION, *entity_columns(len(roles))).iter_rows()
        ]
        return [tuple(fact) for _, fact in sorted(numbered, key=lambda item: item[0])]


def entity_columns(arity: int) -> list[str]:
    """The names of the entity columns of a block."""
    return [str(position) for position in range(arity)]


def concatenate(parts: Sequence[Labels]) -> Labels:
    """The facts of several files, one file after the other."""
    if len(parts) == 1:
        return parts[0]
    builder, first_row = LabelsBuilder(), 0
    for part in parts:
        for roles, block in part.blocks.items():
            builder.add(roles, block.with_columns(pl.col(ROW) + first_row))
        first_row += 1 + max((int(block[ROW][-1]) for block in part.blocks.values()), default=0)
    return replace(builder.build(), notices=tuple(notice for part in parts for notice in part.notices))


class LabelsBuilder:
    """Gathers facts piece by piece; names are dictionary-encoded at once, so memory holds each name one time."""

    def __init__(self) -> None:
        self._relation = pl.Categorical(pl.Categories.random("relation"))
        self._entity = pl.Categorical(pl.Categories.random("entity"))
        self._parts: dict[Roles, list[pl.DataFrame]] = {}
        self._pending: dict[Roles, list[Row]] = {}
        self._n_pending = 0

    def add(self, roles: Roles, facts: pl.DataFrame) -> None:
        """Add a table of facts: row, relation, the entities in order, and perhaps ``arrangement``; names as text."""
        row, relation, *entities = facts.columns[: 2 + len(roles)]
        columns = [pl.col(row).cast(pl.Int64).alias(ROW), _encoded(relation, self._relation, RELATION)]
        columns += [_encoded(entity, self._entity, str(position)) for position, entity in enumerate(entities)]
        if ARRANGEMENT in facts.columns:
            columns.append(pl.col(ARRANGEMENT).cast(pl.Int64))
        self._parts.setdefault(roles, []).append(facts.select(columns))

    def add_row(self, roles: Roles, row: Row) -> None:
        """Add one fact; cheap, the work is done for many at once."""
        self._pending.setdefault(roles, []).append(row)
        self._n_pending += 1
        if self._n_pending >= BATCH:
            self._flush()

    def build(self) -> Labels:
        """What was gathered, each signature in the order of its rows."""
        self._flush()
        blocks = {}
        for roles, parts in self._parts.items():
            if any(ARRANGEMENT in part.columns for part in parts):
                parts = [
                    p if ARRANGEMENT in p.columns else p.with_columns(pl.lit(0).cast(pl.Int64).alias(ARRANGEMENT))
                    for p in parts
                ]
            block = pl.concat(parts, rechunk=True)
            blocks[roles] = block if block[ROW].is_sorted() else block.sort(ROW)
        self._parts = {}
        return Labels(MappingProxyType(blocks))

    def _flush(self) -> None:
        for roles, rows in self._pending.items():
            numbers, relations, entities, arrangements = zip(*rows, strict=True)
            columns = [pl.Series(ROW, numbers), text_series(RELATION, relations)]
            columns += [text_series(str(i), column) for i, column in enumerate(zip(*entities, strict=True))]
            if any(arrangements):
                columns.append(pl.Series(ARRANGEMENT, arrangements))
            self.add(roles, pl.DataFrame(columns))
        self._pending, self._n_pending = {}, 0


def text_series(name: str, values: Sequence[str | None]) -> pl.Series:
    """A column of names; a name that Unicode cannot encode (a lone surrogate) is refused."""
    try:
        return pl.Series(name, values, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise FactError(f"expected names that UTF-8 can hold, found {error.object!r}") from None


def _encoded(column: str, dtype: pl.Categorical, alias: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).cast(dtype).alias(alias)

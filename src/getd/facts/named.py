"""Facts as they stand in a file: names, in the order of the lines, one block per arity.

Names are numbered as they come in, and a fact holds numbers: its roles are a number too, so that facts of many role
signatures cost no more than facts of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.arrays import Ids
from getd.errors import FactError
from getd.facts.relation import Roles

Codes = npt.NDArray[np.uint32]  # numbers of names, in the order in which the names came
BATCH = 100_000  # rows gathered in Python before they become arrays

# one fact on its way in: row (a number that orders the facts of a file), relation, entities, and how far its
# entities were rearranged into canonical order (0: they stood so)
Row = tuple[int, str, Sequence[str], int]


@dataclass(frozen=True, eq=False)
class Block:
    """Facts of one arity, in the order of their rows."""

    row: Ids  # (n,): orders the facts over all blocks
    relation: Codes  # (n,): among the relation names of the labels
    signature: Codes  # (n,): among the role signatures of the labels
    entities: Codes  # (n, arity): among the entity names of the labels
    arrangement: Ids  # (n,): 0 for facts that stood in canonical order already

    def __len__(self) -> int:
        return len(self.row)

    def take(self, rows: Ids | npt.NDArray[np.bool_]) -> Block:
        """Some of the facts."""
        return Block(
            self.row[rows],
            self.relation[rows],
            self.signature[rows],
            self.entities[rows],
            self.arrangement[rows],
        )


@dataclass(frozen=True)
class NamedFacts:
    """Facts with their names. The names may be more than the facts hold."""

    blocks: Mapping[int, Block]  # by arity
    signatures: tuple[Roles, ...]
    relations: pl.Series  # names, text
    entities: pl.Series  # names, text
    notices: tuple[str, ...] = ()  # what a user should be told about how they were read

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def with_blocks(self, blocks: Mapping[int, Block]) -> NamedFacts:
        """The same names with these facts."""
        return replace(self, blocks=MappingProxyType(dict(blocks)))

    def texts(self, arity: int) -> pl.DataFrame:
        """Relation and entities of a block as text, columns ``relation`` and ``"0" .. "n-1"``."""
        block = self.blocks[arity]
        columns = [self.relations.gather(block.relation).alias("relation")]
        columns += [self.entities.gather(block.entities[:, j]).alias(str(j)) for j in range(arity)]
        return pl.DataFrame(columns)

    def facts(self) -> Iterator[tuple[int, Roles, tuple[str, ...]]]:
        """Row, roles, and ``(relation, entity, …)`` of every fact, block by block; a Python loop."""
        for arity, block in self.blocks.items():
            signatures = block.signature.tolist()
            for row, signature, fact in zip(
                block.row.tolist(), signatures, self.texts(arity).iter_rows(), strict=True
            ):
                yield row, self.signatures[signature], fact

    def rows(self) -> list[tuple[str, ...]]:
        """Every fact as ``(relation, entity, …)``, in order; for small data and for tests."""
        numbered = [(row, fact) for row, _, fact in self.facts()]
        return [fact for _, fact in sorted(numbered, key=lambda item: item[0])]

    def first(self) -> tuple[int, str] | None:
        """Arity and relation of the first fact."""
        if not len(self):
            return None
        arity = min(self.blocks, key=lambda arity: int(self.blocks[arity].row[0]))
        return arity, str(self.relations[int(self.blocks[arity].relation[0])])


def new_block(row: Ids, relation: Codes, signature: Codes, entities: Codes) -> Block:
    """Facts that stood in canonical order already."""
    return Block(row, relation, signature, entities, np.zeros(len(row), dtype=np.int64))


def concatenate(parts: Sequence[NamedFacts]) -> NamedFacts:
    """The facts of several files, one file after the other."""
    if len(parts) == 1:
        return parts[0]
    builder, first_row = NamedFactsBuilder(), 0
    for part in parts:
        relations, entities = (
            builder.relation_codes(part.relations),
            builder.entity_codes(part.entities),
        )
        signatures = np.array(
            [builder.signature(roles) for roles in part.signatures], dtype=np.uint32
        )
        for block in part.blocks.values():
            builder.add_block(
                Block(
                    block.row + first_row,
                    relations[block.relation],
                    signatures[block.signature],
                    entities[block.entities],
                    block.arrangement,
                )
            )
        first_row += 1 + max((int(block.row[-1]) for block in part.blocks.values()), default=0)
    return replace(
        builder.build(), notices=tuple(notice for part in parts for notice in part.notices)
    )


class NamedFactsBuilder:
    """Gathers facts piece by piece; names are numbered at once, so memory holds each name one time."""

    def __init__(self) -> None:
        self._relations = _Dictionary("relation")
        self._entities = _Dictionary("entity")
        self._signatures: dict[Roles, int] = {}
        self._parts: dict[int, list[Block]] = {}
        self._pending: dict[int, _Pending] = {}
        self._n_pending = 0

    def signature(self, roles: Roles) -> int:
        """The number of a role signature."""
        return self._signatures.setdefault(roles, len(self._signatures))

    def relation_codes(self, names: pl.Series) -> Codes:
        """The numbers of relation names."""
        return self._relations.codes(names)

    def entity_codes(self, names: pl.Series) -> Codes:
        """The numbers of entity names."""
        return self._entities.codes(names)

    def entity_table(self, columns: Sequence[pl.Series]) -> Codes:
        """The numbers of the names of columns of equal length, ``(n, len(columns))``; short columns many at a time."""
        n = len(columns[0])
        codes = np.empty((n, len(columns)), dtype=np.uint32)
        at_once = max(1, BATCH // max(n, 1))
        for start in range(0, len(columns), at_once):
            part = columns[start : start + at_once]
            names = pl.concat([column.alias("") for column in part]) if len(part) > 1 else part[0]
            codes[:, start : start + at_once] = self.entity_codes(names).reshape(len(part), n).T
        return codes

    def add_block(self, block: Block) -> None:
        """Add facts whose names have the numbers of this builder."""
        if len(block):
            self._parts.setdefault(block.entities.shape[1], []).append(block)

    def add(self, roles: Roles, facts: pl.DataFrame) -> None:
        """Add facts of one signature: row, relation, the entities in order; names as text."""
        row, relation, *names = facts.get_columns()
        entities = self.entity_table(names)
        signature = np.full(len(facts), self.signature(roles), dtype=np.uint32)
        self.add_block(
            new_block(row.to_numpy(), self.relation_codes(relation), signature, entities)
        )

    def add_row(self, roles: Roles, row: Row) -> None:
        """Add one fact; cheap, the work is done for many at once."""
        pending = self._pending.setdefault(len(roles), _Pending([], [], [], [], []))
        number, relation, entities, arrangement = row
        pending.rows.append(number)
        pending.relations.append(relation)
        pending.signatures.append(self.signature(roles))
        pending.entities.extend(entities)
        pending.arrangements.append(arrangement)
        self._n_pending += 1
        if self._n_pending >= BATCH:
            self._flush()

    def build(self) -> NamedFacts:
        """What was gathered, each block in the order of its rows."""
        self._flush()
        blocks = {arity: _joined(parts) for arity, parts in self._parts.items()}
        self._parts = {}
        relations, relation_of = self._relations.names(block.relation for block in blocks.values())
        entities, entity_of = self._entities.names(block.entities for block in blocks.values())
        renumbered = {
            arity: replace(
                block, relation=relation_of(block.relation), entities=entity_of(block.entities)
            )
            for arity, block in blocks.items()
        }
        return NamedFacts(
            MappingProxyType(renumbered), tuple(self._signatures), relations, entities
        )

    def _flush(self) -> None:
        for arity, pending in self._pending.items():
            entities = self.entity_codes(text_series("entity", pending.entities))
            self.add_block(
                Block(
                    np.array(pending.rows, dtype=np.int64),
                    self.relation_codes(text_series("relation", pending.relations)),
                    np.array(pending.signatures, dtype=np.uint32),
                    entities.reshape(len(pending.rows), arity),
                    np.array(pending.arrangements, dtype=np.int64),
                )
            )
        self._pending, self._n_pending = {}, 0


@dataclass
class _Pending:
    """Facts of one arity on their way in; the entities of all of them in one list."""

    rows: list[int]
    relations: list[str]
    signatures: list[int]
    entities: list[str]
    arrangements: list[int]


def text_series(name: str, values: Sequence[str | None]) -> pl.Series:
    """A column of names; a name that Unicode cannot encode (a lone surrogate) is refused."""
    try:
        return pl.Series(name, values, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise FactError(f"expected names that UTF-8 can hold, found {error.object!r}") from None


class _Dictionary:
    """Names and their numbers, in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._dtype = pl.Categorical(pl.Categories.random(name))
        self._kept = pl.Series([""]).cast(
            self._dtype
        )  # polars forgets the numbers once no column has them

    def codes(self, names: pl.Series) -> Codes:
        """The numbers of names; new ones get the next."""
        codes: Codes = names.cast(pl.String).cast(self._dtype).to_physical().to_numpy()
        return codes

    def names(self, codes: Iterable[Codes]) -> tuple[pl.Series, Callable[[Codes], Codes]]:
        """The names that are used, and what gives codes their numbers among these."""
        arrays = list(codes)
        used = np.zeros(1 + max((int(array.max()) for array in arrays), default=-1), dtype=bool)
        for array in arrays:
            used[array] = True
        names = (
            pl.Series("name", np.flatnonzero(used).astype(np.uint32))
            .cat.to(self._dtype)
            .cast(pl.String)
        )
        numbers = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        return names, lambda array: numbers[array]


def _joined(parts: Sequence[Block]) -> Block:
    """The blocks as one, in the order of their rows."""
    block = parts[0]
    if len(parts) > 1:
        block = Block(
            np.concatenate([part.row for part in parts]),
            np.concatenate([part.relation for part in parts]),
            np.concatenate([part.signature for part in parts]),
            np.concatenate([part.entities for part in parts]),
            np.concatenate([part.arrangement for part in parts]),
        )
    in_order = bool((block.row[1:] >= block.row[:-1]).all())
    return block if in_order else block.take(np.argsort(block.row, kind="stable"))

"""Facts with their names, in the order of a file's lines, one block per arity.

Names get numbers as they arrive, and facts hold these numbers. Role signatures are numbered too,
so facts of many signatures cost no more than facts of one.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.arrays import Bools, Ids
from getd.errors import FactError
from getd.facts.relation import Roles

Codes = npt.NDArray[np.uint32]  # numbers of names, in the order of their arrival
EMPTY = 0  # the number of the empty text
BATCH_ROWS = 100_000  # rows that are kept in Python before they become arrays


@dataclass(frozen=True, eq=False)
class Block:
    """Facts of one arity, in the order of their rows."""

    row: Ids  # (n,): orders the facts over all blocks
    relation: Codes  # (n,): numbers of relation names
    signature: Codes  # (n,): numbers of role signatures
    entities: Codes  # (n, arity): numbers of entity names
    arrangement: Ids  # (n,): how the entities were put into canonical order, 0: not at all

    def __len__(self) -> int:
        return len(self.row)

    @property
    def columns(self) -> tuple[Any, ...]:
        """All arrays, in the order of the fields."""
        return self.row, self.relation, self.signature, self.entities, self.arrangement

    def take(self, rows: Ids | Bools) -> Self:
        """Select facts by row numbers or by a mask."""
        return type(self)(*(column[rows] for column in self.columns))


@dataclass(frozen=True)
class NamedFacts:
    """Facts with their names; there may be more names than the facts use."""

    blocks: Mapping[int, Block]  # by arity
    signatures: tuple[Roles, ...]
    relations: pl.Series  # names, text
    entities: pl.Series  # names, text
    notices: tuple[str, ...] = ()  # messages to the user about the reading
    has_relations: bool = True  # False: a table without relations, which has that of its file

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks.values())

    def texts(self, arity: int) -> pl.DataFrame:
        """Relation and entities of a block as text, columns ``relation`` and ``"0" .. "n-1"``."""
        block = self.blocks[arity]
        columns = {"relation": self.relations.gather(block.relation)}
        for position, entities in enumerate(block.entities.T):
            columns[str(position)] = self.entities.gather(entities)
        return pl.DataFrame(columns)

    def facts(self) -> Iterator[tuple[int, Roles, tuple[str, ...]]]:
        """Row, roles and ``(relation, entity, …)`` of every fact, block by block; a Python loop."""
        for arity, block in self.blocks.items():
            rows = block.row.tolist()
            signatures = block.signature.tolist()
            texts = self.texts(arity).iter_rows()
            for row, signature, fact in zip(rows, signatures, texts, strict=True):
                yield row, self.signatures[signature], fact

    def first(self) -> tuple[int, str]:
        """Arity and relation of the first fact."""
        relation, *entities = self.first_names()
        return len(entities), relation

    def first_names(self) -> list[str]:
        """The relation and the entities of the first fact."""
        block = min(self.blocks.values(), key=lambda block: block.row[0])
        relation = self.relations[int(block.relation[0])]
        return [relation, *self.entities.gather(block.entities[0])]


def new_block(row: Ids, relation: Codes, signature: Codes, entities: Codes) -> Block:
    """A block of facts that were in canonical order already."""
    return Block(row, relation, signature, entities, np.zeros_like(row))


def concatenate(parts: Sequence[NamedFacts]) -> NamedFacts:
    """Join the facts of several files, one file after the other."""
    if len(parts) == 1:
        return parts[0]

    builder = NamedFactsBuilder()
    first_row = 0
    for part in parts:
        # Each file has numbered its names by itself.
        relations = builder.relations.codes(part.relations)
        entities = builder.entities.codes(part.entities)
        signatures = builder.signature_codes(part.signatures)

        for block in part.blocks.values():
            renumbered = Block(
                block.row + first_row,
                relations[block.relation],
                signatures[block.signature],
                entities[block.entities],
                block.arrangement,
            )
            builder.add_block(renumbered)
        first_row += 1 + max(block.row[-1] for block in part.blocks.values())

    notices = tuple(notice for part in parts for notice in part.notices)
    return replace(builder.build(), notices=notices)


class NamedFactsBuilder:
    """Collects facts piece by piece; names are numbered at once, so each is held only once."""

    def __init__(self) -> None:
        self.relations = _NameCodes()
        self.entities = _NameCodes()
        self._signatures: dict[Roles, int] = {}
        self._parts: dict[int, list[Block]] = {}  # by arity

        # Single rows wait by arity: row, relation, signature, entities, arrangement.
        self._pending: dict[int, list[tuple[int, str, int, Sequence[str], int]]] = {}
        self._n_pending = 0

    def signature(self, roles: Roles) -> int:
        """The number of a role signature."""
        return self._signatures.setdefault(roles, len(self._signatures))

    def signature_codes(self, signatures: Iterable[Roles]) -> Codes:
        """The numbers of role signatures."""
        return np.fromiter(map(self.signature, signatures), dtype=np.uint32)

    def entity_table(self, columns: Sequence[pl.Series]) -> Codes:
        """The numbers of the names in columns of equal length, ``(n, len(columns))``."""
        n = len(columns[0])
        codes = np.empty((n, len(columns)), dtype=np.uint32)

        # Short columns are numbered many at a time.
        step = max(1, BATCH_ROWS // max(n, 1))
        for start in range(0, len(columns), step):
            part = columns[start : start + step]
            numbers = self.entities.codes(pl.concat(part)).reshape(len(part), n)
            codes[:, start : start + step] = numbers.T
        return codes

    def add_block(self, block: Block) -> None:
        """Add facts whose names have the numbers of this builder."""
        if len(block):
            self._parts.setdefault(block.entities.shape[1], []).append(block)

    def add(self, roles: Roles, facts: pl.DataFrame) -> None:
        """Add facts of one signature: row, relation, the entities in order; names as text."""
        row, relation, *names = facts.get_columns()
        entities = self.entity_table(names)
        relations = self.relations.codes(relation)
        signature = np.full_like(relations, self.signature(roles))
        self.add_block(new_block(row.to_numpy(), relations, signature, entities))

    def add_row(
        self, row: int, relation: str, roles: Roles, entities: Sequence[str], arrangement: int = 0
    ) -> None:
        """Add one fact; this is cheap, because the work is done for many at once."""
        pending = self._pending.setdefault(len(roles), [])
        pending.append((row, relation, self.signature(roles), entities, arrangement))
        self._n_pending += 1
        if self._n_pending >= BATCH_ROWS:
            self._flush()

    def build(self) -> NamedFacts:
        """Return all facts, each block in the order of its rows."""
        self._flush()
        blocks = {arity: _join_blocks(parts) for arity, parts in self._parts.items()}
        self._parts = {}
        relations = self.relations.names()
        return NamedFacts(blocks, tuple(self._signatures), relations, self.entities.names())

    def _flush(self) -> None:
        for arity, pending in self._pending.items():
            rows, relations, signatures, facts, arrangements = zip(*pending, strict=True)
            names = list(chain.from_iterable(facts))
            entities = self.entities.codes(text_series("entity", names))
            block = Block(
                np.array(rows, dtype=np.int64),
                self.relations.codes(text_series("relation", relations)),
                np.array(signatures, dtype=np.uint32),
                entities.reshape(len(pending), arity),
                np.array(arrangements, dtype=np.int64),
            )
            self.add_block(block)
        self._pending = {}
        self._n_pending = 0


def is_name(value: object) -> bool:
    """Whether a value of Python is a name: text that is not empty and has no NUL, or a number."""
    if isinstance(value, str):
        return value != "" and "\0" not in value
    if isinstance(value, Integral):  # of any size
        return not isinstance(value, bool)
    return isinstance(value, Real) and math.isfinite(value)


def text_series(name: str, values: Sequence[str | None]) -> pl.Series:
    """A column of names; a name that Unicode cannot encode (a lone surrogate) is refused."""
    try:
        return pl.Series(name, values, dtype=pl.String)
    except UnicodeEncodeError as error:
        raise FactError(f"expected names that UTF-8 can hold, found {error.object!r}") from None


class _NameCodes:
    """Names and their numbers, in the order of their arrival."""

    def __init__(self) -> None:
        self._dtype = pl.Categorical(pl.Categories.random())

        # Polars forgets the numbers as soon as no column has them. The first is EMPTY.
        self._kept = pl.Series([""]).cast(self._dtype)
        self._largest = 0

    def codes(self, names: pl.Series) -> Codes:
        """The numbers of names; a new name gets the next number."""
        codes: Codes = names.cast(pl.String).cast(self._dtype).to_physical().to_numpy()
        self._largest = max(self._largest, int(codes.max(initial=0)))
        return codes

    def names(self) -> pl.Series:
        """The name of each number."""
        codes = pl.Series("name", np.arange(1 + self._largest, dtype=np.uint32))
        return codes.cat.to(self._dtype).cast(pl.String)


def _join_blocks(parts: Sequence[Block]) -> Block:
    """Join blocks of one arity, in the order of their rows."""
    block = parts[0]
    if len(parts) > 1:
        columns = zip(*(part.columns for part in parts), strict=True)
        block = Block(*map(np.concatenate, columns))
    in_order = (np.diff(block.row) >= 0).all()
    return block if in_order else block.take(np.argsort(block.row, kind="stable"))

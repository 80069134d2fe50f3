"""Lines of text from named facts: what the writers of text formats share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from getd.arrays import Ids
from getd.facts.encode import distinct
from getd.facts.named import Block, Codes, NamedFacts
from getd.facts.relation import Roles
from getd.facts.vocabulary import write_lines


def write_blocks(path: Path, facts: NamedFacts, lines: Callable[[int], pl.Series]) -> None:
    """Write the lines that ``lines`` makes of the block of each arity, in the order of the rows."""
    parts = [
        pl.DataFrame([pl.Series("row", block.row), lines(arity).alias("line")])
        for arity, block in facts.blocks.items()
    ]
    write_lines(path, pl.concat(parts).sort("row")["line"])


class TextPool:
    """Texts by number, from which the lines of a block are joined; each text is held once."""

    def __init__(self) -> None:
        self._parts: list[pl.Series] = []
        self._size = 0

    def add(self, texts: pl.Series | Sequence[str]) -> int:
        """Add texts; return the number of the first."""
        if not isinstance(texts, pl.Series):
            texts = pl.Series(texts, dtype=pl.String)
        first = self._size
        self._parts.append(texts.alias(""))
        self._size += len(texts)
        return first

    def add_used(
        self, names: pl.Series, codes: Codes, write: Callable[[pl.Series], pl.Series]
    ) -> Ids:
        """Add the names that occur in ``codes``, as ``write`` writes them; return their numbers."""
        used, which = distinct(codes.ravel().astype(np.int64))
        return self.add(write(names.gather(used))) + which.reshape(codes.shape)

    def add_by_signature(
        self,
        facts: NamedFacts,
        block: Block,
        texts_of: Callable[[Roles], Sequence[str]],
        write: Callable[[pl.Series], pl.Series] | None = None,
    ) -> Ids:
        """Add equally many texts for each signature; return the number of each fact's first."""
        signatures, which = np.unique(block.signature, return_inverse=True)
        texts: list[str] = []
        for signature in signatures:
            texts += texts_of(facts.signatures[signature])
        series = pl.Series(texts, dtype=pl.String)
        first = self.add(write(series) if write else series)
        return first + which.reshape(-1) * (len(texts) // len(signatures))

    def join(self, columns: Sequence[Ids], separator: str = "") -> pl.Series:
        """Join the texts of each row of these columns into a line."""
        table = np.column_stack(columns)
        texts = pl.concat(self._parts).gather(table.ravel())
        return texts.reshape(table.shape).arr.join(separator)

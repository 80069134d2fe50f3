"""Lines of text from named facts: what the writers of text formats share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from getd.arrays import Ids
from getd.facts.encode import distinct
from getd.facts.named import Block, Codes, NamedFacts
from getd.facts.relation import Roles
from getd.facts.vocabulary import write_lines

Write = Callable[[pl.Series], pl.Series]  # names as the format writes them


class BlockTexts:
    """Texts by number, from which the lines of a block are joined; each text is held once."""

    def __init__(self, facts: NamedFacts, block: Block) -> None:
        self.facts = facts
        self.block = block
        self._parts: list[pl.Series] = []
        self._size = 0

    def add(self, texts: Sequence[str] | pl.Series) -> int:
        """Add texts; return the number of the first."""
        first = self._size
        self._parts.append(pl.Series("", texts, dtype=pl.String))
        self._size += len(texts)
        return first

    def add_relations(self, write: Write) -> Ids:
        """Add the names of relations; return the number of each fact's."""
        return self._add_used(self.facts.relations, self.block.relation, write)

    def add_entities(self, write: Write) -> Ids:
        """Add the names of entities; return their numbers, ``(n, arity)``."""
        return self._add_used(self.facts.entities, self.block.entities, write)

    def add_by_roles(
        self, texts_of: Callable[[Roles], Sequence[str]], write: Write | None = None
    ) -> Ids:
        """Add equally many texts for each signature; return the number of each fact's first."""
        signatures, which = np.unique(self.block.signature, return_inverse=True)
        texts: list[str] = []
        for signature in signatures:
            texts += texts_of(self.facts.signatures[signature])
        written = write(pl.Series(texts, dtype=pl.String)) if write else texts
        return self.add(written) + which * (len(texts) // len(signatures))

    def join(self, columns: Sequence[Ids], separator: str = "") -> pl.Series:
        """Join the texts of each row of these columns into a line."""
        table = np.column_stack(columns)
        texts = pl.concat(self._parts).gather(table.ravel())
        return texts.reshape(table.shape).arr.join(separator)

    def _add_used(self, names: pl.Series, codes: Codes, write: Write) -> Ids:
        used, which = distinct(codes.astype(np.int64))
        return self.add(write(names.gather(used))) + which


def write_facts(path: Path, facts: NamedFacts, to_lines: Callable[[BlockTexts], pl.Series]) -> None:
    """Write the lines that ``to_lines`` makes of each block, in the order of the rows."""
    parts = []
    for block in facts.blocks.values():
        lines = to_lines(BlockTexts(facts, block))
        parts.append(pl.DataFrame({"row": block.row, "line": lines}))
    write_lines(path, pl.concat(parts).sort("row")["line"])

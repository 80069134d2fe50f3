"""Facts in Parquet tables."""

import io
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from getd.errors import FactFileError
from getd.facts.frames import table_to_named
from getd.facts.named import NamedFacts
from getd.facts.relation import Relation
from getd.formats.format import Format, Head, ReadOptions
from getd.formats.parquet_pages import BrokenParquet, check_pages
from getd.formats.tables import to_table
from getd.io.lines import read_blocks
from getd.io.panics import Panic, panics_as_errors


def is_parquet(head: Head) -> bool:
    """Whether the file has the first bytes of Parquet, and plain text is ruled out."""
    return head.data.startswith(b"PAR1") and (b"\0" in head.data or head.ending == ".parquet")


def read_parquet(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts from a table; cells that are no text are written as text."""
    try:
        table = decode_parquet(b"".join(read_blocks(path)))
    except BrokenParquet as error:
        message = f"expected a whole Parquet file, found a broken one ({error})"
        raise FactFileError(path, message) from None

    if len(table) == 0:
        raise FactFileError(path, "expected facts, found a table without rows")
    return table_to_named(table, str(path), options.relation, options.role_order)


def decode_parquet(data: bytes) -> pl.DataFrame:
    """Decode the bytes of a Parquet file; whatever is wrong with them is a ``BrokenParquet``."""
    check_pages(data)
    try:
        with panics_as_errors():
            return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError, ValueError, Panic) as error:
        raise BrokenParquet(str(error).split("\n")[0]) from None


def write_parquet(facts: NamedFacts, path: Path, relations: Iterable[Relation]) -> None:
    with path.open("wb") as file:  # polars would expand a path
        to_table(facts).write_parquet(file)


PARQUET = Format("parquet", read_parquet, write_parquet, (".parquet",), is_parquet, priority=5)

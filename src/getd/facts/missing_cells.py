"""What a user should know about the cells of a table."""

from collections.abc import Iterator

import polars as pl

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "?")  # in other programs


def missing_notices(cells: pl.DataFrame) -> Iterator[str]:
    """Count the cells that other programs write where nothing is known."""
    words: dict[str, int] = {}
    for column in cells:
        for word, count in column.filter(column.is_in(MISSING)).value_counts().iter_rows():
            words[word] = words.get(word, 0) + count
    for word, count in sorted(words.items()):
        plural = "cell is" if count == 1 else "cells are"
        yield f"{count:,} {plural} {word!r}: read as a name, not as missing"

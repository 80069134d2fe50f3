"""Cells of a table that may not mean what they say: words for missing values, stray spaces."""

from collections.abc import Iterator

import polars as pl

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "?")  # in other programs


def cell_notices(cells: pl.DataFrame) -> Iterator[str]:
    """Count the cells that other programs write where nothing is known, and those with spaces."""
    words: dict[str, int] = {}
    for column in cells:
        for word, count in column.filter(column.is_in(MISSING)).value_counts().iter_rows():
            words[word] = words.get(word, 0) + count
    for word, count in sorted(words.items()):
        plural = "cell is" if count == 1 else "cells are"
        yield f"{count:,} {plural} {word!r}: read as a name, not as missing"

    has_space = [column.str.starts_with(" ") | column.str.ends_with(" ") for column in cells]
    n_spaces = sum(int(column.sum()) for column in has_space)
    if n_spaces:
        noun = "cell begins" if n_spaces == 1 else "cells begin"
        yield f"{n_spaces:,} {noun} or end{'s' * (n_spaces == 1)} with a space, which is read too"

"""Rows of CSV, for tables and for hyper-relational facts."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from getd.facts.named import BATCH_ROWS
from getd.formats.fields import Rows, line_numbers, split_fields
from getd.formats.format import Head
from getd.io.lines import MAX_LINE, Piece, read_pieces
from getd.io.problems import Problems

_Group = list[tuple[int, list[str]]]  # rows of one length, each with the line it begins on


def looks_like_csv(head: Head) -> bool:
    """Whether the file is called CSV, or its first line has commas and no other white space."""
    has_commas = "," in head.first and "\t" not in head.first and " " not in head.first.strip()
    return head.ending == ".csv" or (has_commas and not head.looks_like_json)


def read_csv_rows(path: Path, separator: str, problems: Problems) -> Iterator[Rows]:
    """Read the rows of a CSV file, in groups of equal length."""
    pieces = read_pieces(path)
    for piece in pieces:
        if b'"' in piece.data:
            yield from _quoted_rows(piece, pieces, separator, problems)
            return
        yield from split_fields(piece.data, line_numbers(piece), separator)


def allow_long_fields() -> None:
    """Let Python's CSV reader take names as long as a line may be."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))


def _quoted_rows(
    first: Piece, others: Iterable[Piece], separator: str, problems: Problems
) -> Iterator[Rows]:
    """The same where quotation marks occur: a field may hold separators and line ends."""
    allow_long_fields()
    texts = (piece.data.decode() for piece in chain([first], others))
    lines = (f"{line}\n" for text in texts for line in text.split("\n")[:-1])
    reader = csv.reader(lines, delimiter=separator, strict=True)

    groups: dict[int, _Group] = {}
    n_rows = 0
    start = first.first_line
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            problems.add(start, f"expected a row of CSV, found a broken one ({error})")
            row = []

        if row:
            groups.setdefault(len(row), []).append((start, row))
            n_rows += 1
        start = first.first_line + reader.line_num

        if n_rows >= BATCH_ROWS:
            yield from map(_to_rows, groups.values())
            groups = {}
            n_rows = 0
    yield from map(_to_rows, groups.values())


def _to_rows(group: _Group) -> Rows:
    columns = zip(*(row for _, row in group), strict=True)
    series = [pl.Series(str(i), column, dtype=pl.String) for i, column in enumerate(columns)]
    fields = pl.DataFrame(series).select(pl.when(pl.all() != "").then(pl.all()))  # empty: null
    return Rows(np.array([line for line, _ in group]), fields)

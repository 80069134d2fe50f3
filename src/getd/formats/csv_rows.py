"""Rows of fields: of plain lines, and of CSV with quotation marks.

Where all lines have the same number of fields, polars reads them as they are. Elsewhere lines are
grouped by their number of fields with a few passes over the bytes, and polars reads each group,
now a rectangle: no Python per line, whatever the mixture of arities.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from getd.arrays import Ids, expand_spans
from getd.facts.columns import numbered
from getd.facts.named import BATCH_ROWS
from getd.formats.format import Head
from getd.io.lines import BOM, MAX_LINE, Piece, read_pieces
from getd.io.problems import Problems

MARKS = ",;|"  # that separate fields of CSV, and no fields of plain text
LONE_RETURN = "lines that end with a carriage return alone"

_Group = list[tuple[int, list[str]]]  # rows of one length, each with the line it begins on

# Rows with the same number of fields: the column ``line``, where each row begins, and the columns
# 0, 1, … of text, where an empty field is null.
Rows = pl.DataFrame


def _to_rows(lines: Ids, fields: Iterable[pl.Series]) -> Rows:
    return numbered(fields).insert_column(0, pl.Series("line", lines))


def report(rows: Rows, problems: Problems, message: str) -> None:
    """Add every row to the problems."""
    for line in rows["line"]:
        problems.add(line, message)


def report_empty(rows: Rows, problems: Problems) -> bool:
    """Add every row with an empty field to the problems; return whether there is any."""
    with_empty = rows.filter(pl.any_horizontal(pl.all().is_null()))
    for line, *fields in with_empty.iter_rows():
        number = fields.index(None) + 1
        problems.add(line, f"expected a name in every field, found field {number} empty")
    return not with_empty.is_empty()


def report_returns(piece: Piece, problems: Problems) -> None:
    """Add every line with a carriage return that is not before its end to the problems."""
    if b"\r" not in piece.data:
        return
    lines = piece.data.replace(b"\r\n", b"\n").split(b"\n")
    for number, line in enumerate(lines, start=piece.first_line):
        if b"\r" in line:
            problems.add(number, "expected lines that end with a line feed, found " + LONE_RETURN)


def line_numbers(piece: Piece) -> Ids:
    """The number of each line of a piece."""
    return np.arange(piece.first_line, piece.first_line + piece.n_lines)


def split_fields(data: bytes, lines: Ids, separator: str) -> Iterator[Rows]:
    """Split lines into fields, in groups with the same number of them; blank lines are left out."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")

    rectangle = _rectangle(data, len(lines), separator)
    if rectangle is not None:
        yield _to_rows(lines, rectangle)
        return

    for group, part in _group_lines(data, lines, separator.encode()):
        yield _to_rows(group, _columns(part, separator))


def _rectangle(data: bytes, n_lines: int, separator: str) -> pl.DataFrame | None:
    """All lines at once, if they have the same number of fields and none is empty."""
    if separator.encode() not in data[: data.index(b"\n")]:
        return None

    # A line with more fields than the first is an error of polars, one with fewer has nulls.
    try:
        fields = _columns(data, separator)
    except pl.exceptions.ComputeError:
        return None
    is_full = len(fields) == n_lines and not any(column.has_nulls() for column in fields)
    return fields if is_full else None


def _group_lines(data: bytes, lines: Ids, separator: bytes) -> Iterator[tuple[Ids, bytes]]:
    """Lines with the same number of separators, together; blank ones left out."""
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    lengths = np.diff(ends, prepend=-1)

    # How many separators each line has, -1 for a blank one.
    separators = np.flatnonzero(codes == ord(separator))
    n_separators = np.diff(np.searchsorted(separators, ends), prepend=0)
    n_separators[lengths == 1] = -1

    order = np.argsort(n_separators, kind="stable")
    counts, starts = np.unique(n_separators[order], return_index=True)
    if len(counts) == 1 and counts[0] >= 0:
        yield lines, data
        return

    first_bytes = ends - lengths + 1
    for group in np.split(order, starts[1:]):
        if n_separators[group[0]] >= 0:
            own_bytes = expand_spans(first_bytes[group], lengths[group])
            yield lines[group], codes[own_bytes].tobytes()


def _columns(data: bytes, separator: str) -> pl.DataFrame:
    """The fields of lines that have the same number of them, every character literal."""
    if separator.encode() not in data:
        return pl.DataFrame({"0": data.decode().split("\n")[:-1]})
    if data.startswith(BOM):  # part of a name; polars drops the first
        data = BOM + data
    return pl.read_csv(
        data,
        separator=separator,
        has_header=False,
        quote_char=None,
        infer_schema=False,
        empty_string_is_null=True,
    )


def looks_like_csv(head: Head) -> bool:
    """Whether the file is called CSV, or its first line has separators and no white space."""
    first = head.first.strip()
    has_separators = any(mark in first for mark in MARKS) and not re.search(r"[ \t]", first)
    return head.ending == ".csv" or (has_separators and not head.looks_like_json)


def read_csv_rows(path: Path, separator: str, problems: Problems) -> Iterator[Rows]:
    """Read the rows of a CSV file, in groups of equal length."""
    pieces = read_pieces(path)
    for piece in pieces:
        if b'"' in piece.data:
            yield from _quoted_rows(piece, pieces, separator, problems)
            return
        report_returns(piece, problems)
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
            yield from map(_group_to_rows, groups.values())
            groups = {}
            n_rows = 0
    yield from map(_group_to_rows, groups.values())


def _group_to_rows(group: _Group) -> Rows:
    lines, rows = zip(*group, strict=True)
    fields = []
    for column in zip(*rows, strict=True):
        texts = [text or None for text in column]
        fields.append(pl.Series(texts, dtype=pl.String))
    return _to_rows(np.array(lines), fields)

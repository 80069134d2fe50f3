"""Lines of fields: the plain text form (``relation entity …``), and rows of CSV for the readers beside it.

Where all lines have the same number of fields, polars reads them as they are. Elsewhere lines are grouped by their
number of fields with a few passes over the bytes, and each group, now a rectangle, is handed to polars: no Python per
line, whatever the mixture of arities.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.facts.escape import unescape_expr, wrong_escape
from getd.facts.named import BATCH_ROWS, NamedFacts, NamedFactsBuilder
from getd.facts.relation import default_roles
from getd.io.lines import BOM, MAX_LINE, Piece, read_pieces
from getd.io.problems import Problems

Lines = npt.NDArray[np.int64]


def read_text(path: Path, escaped: bool = False) -> NamedFacts:
    """Facts from lines ``relation entity …``: a line that holds a tab is split at tabs, any other at runs of spaces.

    Blank lines are passed over, a carriage return before the line end is dropped. With ``escaped``, names are read as
    :func:`getd.formats.write.write_named` writes them (``\\t`` is a tab); without, every character stands for itself.
    """
    builder, problems = NamedFactsBuilder(), Problems(path)
    for piece in read_pieces(path):
        for lines, fields in _text_fields(piece):
            if fields.width == 1:
                for line, name in zip(lines.tolist(), fields.to_series(), strict=True):
                    problems.add(
                        line, f"expected a relation and at least one entity, found only {name!r}"
                    )
                continue
            if report_empty(fields, lines, problems):
                continue
            if escaped:
                fields = _unescape(fields, lines, problems)
            builder.add(default_roles(fields.width - 1), with_lines(lines, fields))
    problems.check()
    labels = builder.build()
    first = labels.first()
    if first and first[1].lower() == "relation":
        return replace(
            labels,
            notices=(
                f"{path}: the first line looks like a header; plain text has none: read as a fact",
            ),
        )
    return labels


def read_csv_rows(
    path: Path, separator: str, problems: Problems
) -> Iterator[tuple[Lines, pl.DataFrame]]:
    """Rows of a CSV file in groups of equal length, as text columns, with the line each begins on."""
    pieces = read_pieces(path)
    for piece in pieces:
        if b'"' in piece.data:
            yield from _quoted_rows(chain([piece], pieces), separator, problems)
            return
        yield from _fields(piece.data, _line_numbers(piece), separator)


def report_empty(fields: pl.DataFrame, lines: Lines, problems: Problems) -> bool:
    """Add every row with an empty field to the problems; whether there is any."""
    if not any(column.has_nulls() for column in fields):
        return False
    empty = fields.select(pl.any_horizontal(pl.all().is_null())).to_series()
    for line, row in zip(
        lines[empty.to_numpy()].tolist(), fields.filter(empty).iter_rows(), strict=True
    ):
        problems.add(
            line, f"expected a name in every field, found field {row.index(None) + 1} empty"
        )
    return True


def with_lines(lines: Lines, fields: pl.DataFrame) -> pl.DataFrame:
    """The fields with the line numbers as their first column."""
    return pl.DataFrame([pl.Series("line", lines), *fields.get_columns()])


def _text_fields(piece: Piece) -> Iterator[tuple[Lines, pl.DataFrame]]:
    for lines, fields in _fields(piece.data, _line_numbers(piece), "\t"):
        if fields.width > 1:
            yield lines, fields
        else:
            spaced = _squeeze_spaces("".join(f"{line}\n" for line in fields.to_series()).encode())
            yield from _fields(spaced, lines, " ")


def _fields(data: bytes, lines: Lines, separator: str) -> Iterator[tuple[Lines, pl.DataFrame]]:
    """The fields of lines, in groups with the same number of them; blank lines left out, empty fields null."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    rectangle = _rectangle(data, len(lines), separator)
    if rectangle is not None:
        yield lines, rectangle
        return
    for group, part in _group_lines(data, lines, separator.encode()):
        yield group, _columns(part, separator)


def _rectangle(data: bytes, n_lines: int, separator: str) -> pl.DataFrame | None:
    """All lines at once, if they have the same number of fields and none is empty."""
    if separator.encode() not in data[: data.index(b"\n")]:
        return None
    try:
        fields = _columns(
            data, separator
        )  # a line with more fields than the first is an error, one with fewer has nulls
    except pl.exceptions.ComputeError:
        return None
    return (
        fields
        if len(fields) == n_lines and not any(column.has_nulls() for column in fields)
        else None
    )


def _line_numbers(piece: Piece) -> Lines:
    return np.arange(piece.first_line, piece.first_line + piece.n_lines)


def _group_lines(data: bytes, lines: Lines, separator: bytes) -> Iterator[tuple[Lines, bytes]]:
    """Lines with the same number of separators, together; blank ones left out."""
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    places = np.flatnonzero(codes == ord(separator))
    per_line = np.diff(np.searchsorted(places, ends), prepend=0)
    lengths = np.diff(ends, prepend=-1)
    per_line[lengths == 1] = -1
    order = np.argsort(per_line, kind="stable")
    counts, starts = np.unique(per_line[order], return_index=True)
    if len(counts) == 1 and counts[0] >= 0:
        yield lines, data
        return
    sorted_data = memoryview(codes[_byte_order(ends - lengths + 1, lengths, order)].tobytes())
    offsets = np.concatenate([[0], np.cumsum(lengths[order])])
    for count, start, stop in zip(counts, starts, [*starts[1:], len(order)], strict=True):
        if count >= 0:
            yield lines[order[start:stop]], bytes(sorted_data[offsets[start] : offsets[stop]])


def _byte_order(starts: Lines, lengths: Lines, order: Lines) -> Lines:
    """Where each byte comes from once the lines stand in another order."""
    lengths = lengths[order]
    shifts = starts[order] - (np.cumsum(lengths) - lengths)
    return np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))


def _squeeze_spaces(data: bytes) -> bytes:
    """No spaces at the ends of lines, single ones within."""
    if b"  " in data or b" \n" in data or b"\n " in data or data.startswith(b" "):
        data = re.sub(rb"^ +| +$", b"", data, flags=re.MULTILINE)
        data = re.sub(rb" +", b" ", data)
    return data


def _columns(data: bytes, separator: str) -> pl.DataFrame:
    """The fields of lines that have the same number of them, every character literal; empty fields are null."""
    if separator.encode() not in data:
        return pl.DataFrame({"0": data.decode().split("\n")[:-1]})
    if data.startswith(BOM):  # part of a name here; polars drops the first
        data = BOM + data
    return pl.read_csv(
        data,
        separator=separator,
        has_header=False,
        quote_char=None,
        infer_schema=False,
        empty_string_is_null=True,
    )


def _unescape(fields: pl.DataFrame, lines: Lines, problems: Problems) -> pl.DataFrame:
    suspect = fields.select(
        pl.any_horizontal(pl.all().str.contains("\\", literal=True))
    ).to_series()
    if not suspect.any():
        return fields
    for line, row in zip(
        lines[suspect.to_numpy()].tolist(), fields.filter(suspect).iter_rows(), strict=True
    ):
        if wrong := next(filter(None, map(wrong_escape, row)), None):
            problems.add(line, f"expected the escapes \\\\ \\t \\n \\r, found {wrong}")
    return fields.select(unescape_expr(pl.all()))


def _quoted_rows(
    pieces: Iterable[Piece], separator: str, problems: Problems
) -> Iterator[tuple[Lines, pl.DataFrame]]:
    """The same for a file with quotation marks in it, where a field may hold separators and line ends."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))  # a name may be as long as a line
    pieces = iter(pieces)
    first = next(pieces)
    text = (
        line + "\n"
        for piece in chain([first], pieces)
        for line in piece.data.decode().split("\n")[:-1]
    )
    reader = csv.reader(text, delimiter=separator, strict=True)
    groups: dict[int, list[tuple[int, list[str]]]] = {}
    start, n_rows = first.first_line, 0
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
            yield from _grouped(groups)
            groups, n_rows = {}, 0
    yield from _grouped(groups)


def _grouped(
    groups: dict[int, list[tuple[int, list[str]]]],
) -> Iterator[tuple[Lines, pl.DataFrame]]:
    for rows in groups.values():
        columns = zip(*(row for _, row in rows), strict=True)
        frame = pl.DataFrame(
            [pl.Series(str(i), column, dtype=pl.String) for i, column in enumerate(columns)]
        )
        frame = frame.select(pl.when(pl.all() != "").then(pl.all()))  # empty fields are null
        yield np.array([line for line, _ in rows]), frame

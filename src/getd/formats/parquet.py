"""The bytes of a Parquet file to a table; whatever is wrong with them is an error.

A damaged number of values makes polars ask for more memory than there is, and Rust then ends the process: nothing can
be caught. So the headers of all pages, which hold these numbers, are looked at first. They are written in Thrift's
compact protocol (https://github.com/apache/parquet-format, parquet.thrift); fields go by their numbers there.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import polars as pl

from getd.io.panics import Panic, panics_as_errors

_Struct = dict[int, Any]  # fields by number
_PAGE_HEADERS = (5, 7, 8)  # of a data page, a dictionary, a data page of the second version
_UNREADABLE = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)  # of bytes that mean something else
_I8, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 7, 8, 9, 10, 11, 12


class BrokenParquet(Exception):
    """Bytes that are no sound Parquet file."""


def decode_parquet(data: bytes) -> pl.DataFrame:
    """The table of a Parquet file."""
    check_pages(data)
    try:
        with panics_as_errors():
            return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError, ValueError, Panic) as error:
        raise BrokenParquet(str(error).split("\n")[0]) from None


def check_pages(data: bytes) -> None:
    """Refuse pages that say they have more values than they can; what cannot be read at all is for polars to say."""
    try:
        size = int.from_bytes(data[-8:-4], "little")
        footer, _ = _struct(data, len(data) - 8 - size)
        columns = [column[3] for row_group in footer[4] for column in row_group[1]]
    except _UNREADABLE:
        return
    for column in columns:
        try:
            for number, most in _pages(data, column):
                if not 0 <= number <= most:
                    raise BrokenParquet(
                        f"a page of {number:,} values, where at most {most:,} can be"
                    )
        except _UNREADABLE:
            continue


def _pages(data: bytes, column: _Struct) -> Iterator[tuple[int, int]]:
    """How many values a column and each of its pages say they have, and how many they can have."""
    most = column[5]
    start = min(offset for offset in (column.get(9), column.get(11)) if offset)
    end = start + column[7]
    yield most, max(most, 0)
    n_values = 0
    while start < end and n_values < most:
        header, start = _struct(data, start)
        start += max(header[3], 0)
        for field in _PAGE_HEADERS:
            if field in header:
                yield header[field][1], most if field != 7 else len(data)
                n_values += header[field][1] if field != 7 else 0


def _struct(data: bytes, place: int) -> tuple[_Struct, int]:
    """The fields of a struct, and the place behind it."""
    if place < 0:
        raise IndexError
    fields: _Struct = {}
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _integer(data, place)
        fields[number], place = _value(data, place, head & 15)
    return fields, place + 1


def _value(data: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):  # a boolean is its type
        return kind == 1, place
    if kind == _I8:
        return data[place], place + 1
    if kind == _DOUBLE:
        return None, place + 8
    if kind == _BINARY:
        length, place = _varint(data, place)
        return None, place + length
    if kind in (_LIST, _SET):
        return _list(data, place)
    if kind == _MAP:
        raise TypeError  # Parquet has none
    return _struct(data, place) if kind == _STRUCT else _integer(data, place)


def _list(data: bytes, place: int) -> tuple[list[Any], int]:
    length, kind = data[place] >> 4, data[place] & 15
    place += 1
    if length == 15:
        length, place = _varint(data, place)
    values = []
    for _ in range(length):
        value, place = _value(data, place, kind if kind > 2 else _I8)
        values.append(value)
    return values, place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise TypeError  # longer than any number


def _integer(data: bytes, place: int) -> tuple[int, int]:
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place

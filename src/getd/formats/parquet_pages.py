"""A look at the pages of a Parquet file before polars reads it.

A damaged number of values makes polars ask for more memory than there is, and Rust then ends the
process: nothing can be caught. So the headers of all pages, which hold these numbers, are checked
first. They are written in Thrift's compact protocol (https://github.com/apache/parquet-format,
parquet.thrift), where fields go by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_Struct = dict[int, Any]  # fields by number

# Fields of structs in parquet.thrift
_ROW_GROUPS = 4  # of the footer
_COLUMNS = 1  # of a row group
_META_DATA = 3  # of a column
_N_VALUES, _SIZE, _DATA_OFFSET, _DICTIONARY_OFFSET = 5, 7, 9, 11  # of the meta data
_PAGE_SIZE = 3  # of a page header, compressed
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 5, 7, 8  # of a page header
_PAGE_VALUES = 1  # of a page of any kind

# Types of values in Thrift's compact protocol
_TRUE, _FALSE, _I8, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_MAX_SHIFT = 63  # bits of the longest number

# What bytes that mean something else lead to
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


class BrokenParquet(Exception):
    """Bytes that are no sound Parquet file."""


def check_pages(data: bytes) -> None:
    """Refuse pages that claim more values than they can have; polars reports other damage."""
    try:
        footer_size = int.from_bytes(data[-8:-4], "little")
        footer, _ = _read_struct(data, len(data) - 8 - footer_size)
        columns = [
            column[_META_DATA] for group in footer[_ROW_GROUPS] for column in group[_COLUMNS]
        ]
    except _UNREADABLE:
        return

    for column in columns:
        try:
            for number, limit in _value_counts(data, column):
                if not 0 <= number <= limit:
                    raise BrokenParquet(
                        f"a page of {number:,} values, where at most {limit:,} can be"
                    )
        except _UNREADABLE:
            continue


def _value_counts(data: bytes, column: _Struct) -> Iterator[tuple[int, int]]:
    """How many values a column and each of its pages claim, and how many they can have."""
    limit = column[_N_VALUES]
    offsets = (column.get(_DATA_OFFSET), column.get(_DICTIONARY_OFFSET))
    start = min(offset for offset in offsets if offset)
    end = start + column[_SIZE]
    yield limit, max(limit, 0)

    n_values = 0
    while start < end and n_values < limit:
        header, start = _read_struct(data, start)
        start += max(header[_PAGE_SIZE], 0)
        for page in (_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2):
            if page in header:
                number = header[page][_PAGE_VALUES]
                is_dictionary = page == _DICTIONARY_PAGE
                yield number, len(data) if is_dictionary else limit
                n_values += 0 if is_dictionary else number


def _read_struct(data: bytes, offset: int) -> tuple[_Struct, int]:
    """The fields of a struct, and the offset behind it."""
    if offset < 0:
        raise IndexError

    fields: _Struct = {}
    number = 0
    while head := data[offset]:
        offset += 1
        if head >> 4:
            number += head >> 4
        else:
            number, offset = _read_integer(data, offset)
        fields[number], offset = _read_value(data, offset, head & 15)
    return fields, offset + 1


def _read_value(data: bytes, offset: int, kind: int) -> tuple[Any, int]:
    """A value of a kind, and the offset behind it; numbers with a point and texts are skipped."""
    if kind in (_TRUE, _FALSE):  # a boolean is its type
        return kind == _TRUE, offset
    if kind == _I8:
        return data[offset], offset + 1
    if kind == _DOUBLE:
        return None, offset + 8
    if kind == _BINARY:
        length, offset = _read_varint(data, offset)
        return None, offset + length
    if kind in (_LIST, _SET):
        return _read_list(data, offset)
    if kind == _MAP:
        raise TypeError  # Parquet has none
    return _read_struct(data, offset) if kind == _STRUCT else _read_integer(data, offset)


def _read_list(data: bytes, offset: int) -> tuple[list[Any], int]:
    length = data[offset] >> 4
    kind = data[offset] & 15
    offset += 1
    if length == 15:
        length, offset = _read_varint(data, offset)

    values = []
    for _ in range(length):
        value, offset = _read_value(data, offset, max(kind, _I8))  # a boolean is a byte
        values.append(value)
    return values, offset


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset += 1
        shift += 7
        if byte < 128:
            return value, offset
        if shift > _MAX_SHIFT:
            raise TypeError  # longer than any number


def _read_integer(data: bytes, offset: int) -> tuple[int, int]:
    value, offset = _read_varint(data, offset)
    return (value >> 1) ^ -(value & 1), offset

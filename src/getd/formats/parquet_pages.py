"""A look at the pages of a Parquet file before polars reads it.

A damaged number of values makes polars ask for more memory than there is, and Rust then ends the
process: nothing can be caught. So the headers of all pages, which hold these numbers, are checked
first. They are written in Thrift's compact protocol (https://github.com/apache/parquet-format,
parquet.thrift), where fields go by their numbers.
"""

from collections.abc import Iterator
from io import SEEK_CUR, BytesIO
from typing import Any, BinaryIO

_Struct = dict[int, Any]  # fields by number

# Fields of structs in parquet.thrift
_ROW_GROUPS = 4  # of the footer
_COLUMNS = 1  # of a row group
_META_DATA = 3  # of a column

# Fields of the meta data
_N_VALUES = 5
_SIZE = 7
_DATA_OFFSET = 9
_DICTIONARY_OFFSET = 11

# Fields of a page header
_PAGE_SIZE = 3  # compressed
_DATA_PAGE = 5
_DICTIONARY_PAGE = 7
_DATA_PAGE_V2 = 8
_PAGE_VALUES = 1  # of a page of any kind

# Types of values in Thrift's compact protocol
_TRUE = 1
_FALSE = 2
_I8 = 3
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_MAP = 11
_STRUCT = 12
_MAX_SHIFT = 63  # bits of the longest number

# What bytes that mean something else lead to
_UNREADABLE = (AttributeError, LookupError, OverflowError, TypeError, ValueError, RecursionError)


class BrokenParquet(Exception):
    """Bytes that are no sound Parquet file."""


def check_pages(data: bytes) -> None:
    """Refuse pages that claim more values than they can have; polars reports other damage."""
    file = BytesIO(data)
    try:
        footer_size = int.from_bytes(data[-8:-4], "little")
        file.seek(len(data) - 8 - footer_size)
        groups = _read_struct(file)[_ROW_GROUPS]
        columns = [column[_META_DATA] for group in groups for column in group[_COLUMNS]]
    except _UNREADABLE:
        return

    for column in columns:
        try:
            for number, limit in _value_counts(file, column, len(data)):
                if not 0 <= number <= limit:
                    raise BrokenParquet(
                        f"a page of {number:,} values, where at most {limit:,} can be"
                    )
        except _UNREADABLE:
            continue


def _value_counts(file: BinaryIO, column: _Struct, file_size: int) -> Iterator[tuple[int, int]]:
    """How many values a column and each of its pages claim, and how many they can have."""
    limit = column[_N_VALUES]
    offsets = (column.get(_DATA_OFFSET), column.get(_DICTIONARY_OFFSET))
    start = min(offset for offset in offsets if offset)
    end = start + column[_SIZE]
    yield limit, max(limit, 0)

    n_values = 0
    file.seek(start)
    while file.tell() < end and n_values < limit:
        header = _read_struct(file)
        file.seek(max(header[_PAGE_SIZE], 0), SEEK_CUR)
        for page in (_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2):
            if page not in header:
                continue
            number = header[page][_PAGE_VALUES]
            if page == _DICTIONARY_PAGE:
                yield number, file_size
            else:
                yield number, limit
                n_values += number


def _read_struct(file: BinaryIO) -> _Struct:
    """The fields of a struct."""
    fields: _Struct = {}
    number = 0
    while head := _read_byte(file):
        step = head >> 4
        number = number + step if step else _read_integer(file)
        fields[number] = _read_value(file, head & 15)
    return fields


def _read_value(file: BinaryIO, kind: int) -> Any:
    """A value of a kind; numbers with a point and texts are skipped."""
    if kind in (_TRUE, _FALSE):  # a boolean is its type
        return kind == _TRUE
    if kind == _I8:
        return _read_byte(file)
    if kind in (_DOUBLE, _BINARY):
        file.seek(8 if kind == _DOUBLE else _read_varint(file), SEEK_CUR)
        return None
    if kind in (_LIST, _SET):
        return _read_list(file)
    if kind == _MAP:
        raise TypeError  # Parquet has none
    return _read_struct(file) if kind == _STRUCT else _read_integer(file)


def _read_list(file: BinaryIO) -> list[Any]:
    head = _read_byte(file)
    length = head >> 4
    if length == 15:
        length = _read_varint(file)
    kind = max(head & 15, _I8)  # a boolean is a byte
    if kind == _DOUBLE:
        raise TypeError  # Parquet has none, and skipping them would never reach the end
    return [_read_value(file, kind) for _ in range(length)]


def _read_integer(file: BinaryIO) -> int:
    value = _read_varint(file)
    return (value >> 1) ^ -(value & 1)


def _read_varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, _MAX_SHIFT + 1, 7):
        byte = _read_byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise TypeError  # longer than any number


def _read_byte(file: BinaryIO) -> int:
    return file.read(1)[0]

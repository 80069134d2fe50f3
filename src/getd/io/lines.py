"""Bytes of regular files, decompressed from gzip and zstd, and cut into pieces of whole lines."""

import gzip
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard

from getd.errors import DataNotFound, FactFileError

BLOCK = 4 << 20  # bytes read at a time
MAX_LINE = 1 << 20  # bytes: a longer line is not a fact
TOO_LONG = f"expected a fact, found a line of more than {MAX_LINE:,} bytes"
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

# First bytes of files that are no text, and what to do about them.
OTHER_FILES = {
    b"PK\x03\x04": "a zip file or a workbook; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel; save the sheet as CSV",
    b"SQLite format 3": "a SQLite database; write its tables as CSV",
    b"ARROW1": "an Arrow file; write it as Parquet",
    b"\x80\x04": "a pickle, which getd never reads; write it as Parquet or CSV",
    b"\x80\x05": "a pickle, which getd never reads; write it as Parquet or CSV",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
}


@dataclass(frozen=True)
class Piece:
    """Whole lines of a file, valid UTF-8."""

    data: bytes
    first_line: int  # counted from 1
    n_lines: int


def read_pieces(path: Path) -> Iterator[Piece]:
    """Read the lines of a text file, some megabytes at a time, without a byte order mark.

    An empty file, bytes that are not UTF-8, a NUL byte, and a line that is too long are errors.
    """
    rest = b""  # the beginning of a line that the next block completes
    offset = 0
    line = 1
    for block in read_blocks(path):
        data = rest + block
        if offset == 0 and data.startswith(BOM):
            data = data.removeprefix(BOM)
            offset = len(BOM)

        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if len(rest) > MAX_LINE:
            raise _error(path, TOO_LONG, line + data.count(b"\n"))
        if end:
            piece = _piece(path, data[:end], line, offset)
            yield piece
            line += piece.n_lines
            offset += end

    if rest:
        yield _piece(path, rest + b"\n", line, offset)
    elif line == 1:
        raise _error(path, "expected facts, found an empty file")


def read_blocks(path: Path) -> Iterator[bytes]:
    """Read the bytes of a regular file; decompress it if its first bytes say gzip or zstd."""
    try:
        with open_file(path) as file:
            magic = file.read(4)
            file.seek(0)
            if magic.startswith(GZIP_MAGIC):
                with gzip.open(file) as unpacked:
                    yield from iter(lambda: unpacked.read(BLOCK), b"")
            elif magic == ZSTD_MAGIC:
                yield from _unpack_zstd(file)
            else:
                yield from iter(lambda: file.read(BLOCK), b"")
    except EOFError:
        raise _error(path, "expected a whole compressed file, found one cut short") from None
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        message = f"expected a sound compressed file, found a broken one ({error})"
        raise _error(path, message) from None
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror or error}") from None


def read_head(path: Path, size: int = MAX_LINE) -> bytes:
    """Read the first bytes of a file, decompressed, without a byte order mark."""
    head = b""
    for block in read_blocks(path):
        head += block
        if len(head) >= size:
            break
    return head[:size].removeprefix(BOM)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file; refuse a device, a pipe or a missing path before reading anything."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise DataNotFound(f"{path}: no such file") from None
    if not stat.S_ISREG(mode):
        kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
        raise _error(path, f"expected a regular file, found a {kind}")
    return path.open("rb")


def _unpack_zstd(file: BinaryIO) -> Iterator[bytes]:
    """Decompress the frames of a zstd file, one after the other."""
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    data = file.read(BLOCK)
    while data:
        unpacked = unpacker.decompress(data)
        if unpacked:
            yield unpacked

        data = unpacker.unused_data or file.read(BLOCK)
        if unpacker.eof and data:
            unpacker = zstandard.ZstdDecompressor().decompressobj()
    if not unpacker.eof:
        raise EOFError


def _piece(path: Path, data: bytes, line: int, offset: int) -> Piece:
    """Check whole lines that begin at an offset: text, UTF-8, no line too long."""
    wrong = data.find(b"\0")
    message = "expected text, found a NUL byte at offset {}"
    if wrong < 0 and not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = error.start
            byte = f"byte 0x{data[wrong]:02x}"
            message = f"expected UTF-8, found {byte} at offset {{}}; save the file as UTF-8"
    if wrong >= 0:
        kind = _kind_of_file(data) if offset == 0 else None
        message = f"expected text, found {kind}" if kind else message.format(offset + wrong)
        raise _error(path, message, line + data.count(b"\n", 0, wrong))

    # A line of more than MAX_LINE bytes covers a whole window of half that size.
    half = MAX_LINE // 2
    windows = range(0, len(data) - half, half)
    if any(data.find(b"\n", start, start + half) < 0 for start in windows):
        for number, row in enumerate(data.split(b"\n"), start=line):
            if len(row) > MAX_LINE:
                raise _error(path, TOO_LONG, number)

    n_lines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    return Piece(data, line, n_lines)


def _kind_of_file(data: bytes) -> str | None:
    """What a file is that begins like this, if it is one of the usual files that are no text."""
    kinds = (kind for magic, kind in OTHER_FILES.items() if data.startswith(magic))
    return next(kinds, None)


def _error(path: Path, message: str, line: int | None = None) -> FactFileError:
    return FactFileError(path, [(f":{line}" if line else "", message)])

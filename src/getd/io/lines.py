"""Bytes from a path: only regular files, gzip and zstd opened on the way, cut into pieces of whole lines."""

from __future__ import annotations

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
MAX_LINE = 1 << 20  # a longer line is not a fact
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a file, valid UTF-8; ``first_line`` is the number of the first, counted from 1."""

    data: bytes
    first_line: int
    n_lines: int


def read_pieces(path: Path) -> Iterator[Piece]:
    """The lines of a text file, some megabytes at a time; a byte order mark at the start is dropped.

    Raises
    ------
    FactFileError
        For an empty file, bytes that are no UTF-8 (with their offset), a NUL byte, an endless line.
    """
    rest, offset, line, is_empty = b"", 0, 1, True
    for block in read_blocks(path):
        data = rest + block
        if offset == 0 and data.startswith(BOM):
            data, offset = data[len(BOM) :], len(BOM)
        is_empty = is_empty and not data
        cut = data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        if len(rest) > MAX_LINE:
            raise _endless_line(path, line + whole.count(b"\n"))
        if whole:
            piece = _piece(path, whole, line, offset)
            yield piece
            line, offset = line + piece.n_lines, offset + len(whole)
    if rest:
        yield _piece(path, rest + b"\n", line, offset)
    if is_empty:
        raise FactFileError(path, [("", "expected facts, found an empty file")])


def read_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a regular file, decompressed where its first bytes say gzip or zstd."""
    try:
        with open_file(path) as file:
            magic = file.read(4)
            file.seek(0)
            if magic.startswith(b"\x1f\x8b"):
                with gzip.open(file) as unpacked:
                    yield from iter(lambda: unpacked.read(BLOCK), b"")
            elif magic == b"\x28\xb5\x2f\xfd":
                yield from _unpack_zstd(file)
            else:
                yield from iter(lambda: file.read(BLOCK), b"")
    except EOFError:
        raise FactFileError(
            path, [("", "expected a whole compressed file, found one cut short")]
        ) from None
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise FactFileError(
            path, [("", f"expected a sound compressed file, found a broken one ({error})")]
        ) from None
    except OSError as error:
        raise FactFileError(path, [("", f"cannot be read: {error.strerror or error}")]) from None


def read_head(path: Path, size: int = MAX_LINE) -> bytes:
    """The first bytes of a file, decompressed, without a byte order mark."""
    head = b""
    for block in read_blocks(path):
        head += block
        if len(head) >= size:
            break
    return head[:size].removeprefix(BOM)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file; a device, a pipe or a missing path is refused before anything is read."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise DataNotFound(f"{path}: no such file") from None
    if not stat.S_ISREG(mode):
        kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
        raise FactFileError(path, [("", f"expected a regular file, found a {kind}")])
    return path.open("rb")


def _unpack_zstd(file: BinaryIO) -> Iterator[bytes]:
    unpacker, data = zstandard.ZstdDecompressor().decompressobj(), file.read(BLOCK)
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
    nul = data.find(b"\0")
    if nul >= 0:
        place = f":{line + data[:nul].count(10)}"
        raise FactFileError(
            path, [(place, f"expected text, found a NUL byte at offset {offset + nul}")]
        )
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            place, at = f":{line + data[: error.start].count(10)}", offset + error.start
            raise FactFileError(
                path,
                [(place, f"expected UTF-8, found byte 0x{data[error.start]:02x} at offset {at}")],
            ) from None
    _check_line_lengths(path, data, line)
    return Piece(data, line, int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))))


def _check_line_lengths(path: Path, data: bytes, line: int) -> None:
    """A line of more than MAX_LINE bytes covers a whole window of half that size, so few look-ups find it."""
    half = MAX_LINE // 2
    if any(data.find(b"\n", start, start + half) < 0 for start in range(0, len(data) - half, half)):
        for number, row in enumerate(data.split(b"\n"), start=line):
            if len(row) > MAX_LINE:
                raise _endless_line(path, number)


def _endless_line(path: Path, line: int) -> FactFileError:
    return FactFileError(
        path, [(f":{line}", f"expected a fact, found a line of more than {MAX_LINE:,} bytes")]
    )

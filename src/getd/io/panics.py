"""Panics of Rust libraries as errors, without their report on the terminal."""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from getd.errors import is_panic

SILENCE = 0.1  # seconds without a word after which a report is complete
BACKTRACE = 1.0  # the same with a backtrace, if RUST_BACKTRACE asks for one: it takes long to write


class Panic(Exception):
    """A Rust library panicked."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic in the block into :class:`Panic`.

    Rust reports a panic on file descriptor 2 before Python learns of it. So the descriptor is a
    temporary file during the block: its text is dropped after a panic, and printed otherwise. If
    the block fails in one thread of the library while another panics, the report is dropped, too.
    """
    with tempfile.TemporaryFile() as report:
        try:
            with _standard_error_into(report):
                yield
        except BaseException as error:
            if is_panic(error):
                raise Panic(str(error).split("\n")[0]) from None
            if not _holds(report, b"^thread '.*' .*panicked at "):
                _print(report)
            raise
        _print(report)


@contextmanager
def _standard_error_into(file: BinaryIO) -> Iterator[None]:
    try:
        original = os.dup(2)
    except OSError:  # closed: there is nothing to keep quiet
        yield
        return

    _flush()
    os.dup2(file.fileno(), 2)
    try:
        yield
    except BaseException:
        _wait_for_silence(file)
        raise
    finally:
        _flush()
        os.dup2(original, 2)
        os.close(original)


def _wait_for_silence(file: BinaryIO) -> None:
    """Wait until other threads have written their reports."""
    before = -1
    while (size := os.fstat(file.fileno()).st_size) != before:
        before = size
        time.sleep(BACKTRACE if _holds(file, b"^stack backtrace:") else SILENCE)


def _holds(report: BinaryIO, line: bytes) -> bool:
    """Whether a report has such a line; where the next one is written stays as it is."""
    number = report.fileno()
    text = os.pread(number, os.fstat(number).st_size, 0)
    return re.search(line, text, re.MULTILINE) is not None


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()


def _print(report: BinaryIO) -> None:
    report.seek(0)
    if report.read(1):
        report.seek(0)
        with open(2, "wb", closefd=False) as error:
            shutil.copyfileobj(report, error)

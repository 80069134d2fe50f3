"""Panics of Rust libraries as errors, without their report on the terminal."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from getd.errors import is_panic


class Panic(Exception):
    """A Rust library panicked."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic in the block into :class:`Panic`.

    Rust reports a panic on file descriptor 2 before Python learns of it. So the descriptor is a
    temporary file during the block: its text is dropped after a panic, and printed otherwise.
    """
    with tempfile.TemporaryFile() as report:
        try:
            with _standard_error_into(report):
                yield
        except BaseException as error:
            if is_panic(error):
                raise Panic(str(error).split("\n")[0]) from None
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
    finally:
        _flush()
        os.dup2(original, 2)
        os.close(original)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()


def _print(report: BinaryIO) -> None:
    report.seek(0)
    if report.read(1):
        report.seek(0)
        with open(2, "wb", closefd=False) as error:
            shutil.copyfileobj(report, error)

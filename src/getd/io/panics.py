"""Libraries in Rust that give up: their panics as errors, and no report of theirs on the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from getd.errors import is_panic


class Panic(Exception):
    """A library in Rust gave up."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """A panic within becomes :class:`Panic`.

    Rust reports a panic on file descriptor 2 before Python hears of it. So the descriptor is a file meanwhile: what
    stands there at the end is dropped after a panic, and passed on otherwise.
    """
    with tempfile.TemporaryFile() as report:
        try:
            with _standard_error_into(report):
                yield
        except BaseException as error:
            if is_panic(error):
                raise Panic(str(error).split("\n")[0]) from None
            _pass_on(report)
            raise
        _pass_on(report)


@contextmanager
def _standard_error_into(file: BinaryIO) -> Iterator[None]:
    try:
        kept = os.dup(2)
    except OSError:  # closed: there is nothing to keep quiet
        yield
        return
    _flush()
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, 2)
        os.close(kept)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()


def _pass_on(report: BinaryIO) -> None:
    report.seek(0)
    if report.read(1):
        report.seek(0)
        with open(2, "wb", closefd=False) as error:
            shutil.copyfileobj(report, error)

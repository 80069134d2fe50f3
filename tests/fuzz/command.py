"""The command line in this process, with all that reaches its file descriptors."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from getd.cli.app import exit_code, main
from tests.fuzz.case import Outcome


class TimeLimit(BaseException):
    """A case took too long; raised by the alarm of the campaign."""


def run_getd(*arguments: object) -> Outcome:
    """Run a command of getd as the shell does."""
    return _run(lambda: main([str(argument) for argument in arguments]))


def run_command(command: Callable[..., object], *arguments: object, **options: object) -> Outcome:
    """Run the function of a command of getd: the same, but for the parsing of arguments, which
    takes the most time.
    """
    return _run(lambda: exit_code(lambda: command(*arguments, **options)))


def _run(command: Callable[[], int]) -> Outcome:
    """An exception is an outcome too, but the time limit passes through."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code, trace = 70, ""
        with _descriptors(out, err):
            try:
                code = command()
            except TimeLimit:
                raise
            except BaseException:
                trace = traceback.format_exc()
        return Outcome(code, _text(out), _text(err), trace)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="backslashreplace")


@contextmanager
def _descriptors(out: BinaryIO, err: BinaryIO) -> Iterator[None]:
    """Standard output and error into files, those of libraries that know no Python too."""
    before = sys.stdout, sys.stderr
    kept = [os.dup(1), os.dup(2)]
    for stream in before:
        stream.flush()
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    options = {"encoding": "utf-8", "errors": "backslashreplace", "closefd": False}
    sys.stdout = open(1, "w", **options)  # noqa: SIM115
    sys.stderr = open(2, "w", **options)  # noqa: SIM115
    try:
        yield
    finally:
        sys.stdout.close()
        sys.stderr.close()
        sys.stdout, sys.stderr = before
        for descriptor, copy in enumerate(kept, start=1):
            os.dup2(copy, descriptor)
            os.close(copy)

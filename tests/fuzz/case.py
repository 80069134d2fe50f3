"""One case of the fuzzer, what came of it, and what must never come of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_LINE = 300  # characters of a line on standard error
MAX_LINES = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Outcome:
    """What a command did; the texts are all that reached the file descriptors 1 and 2."""

    code: int  # the exit code
    out: str = ""
    err: str = ""
    traceback: str = ""  # of an exception that is no clean exit


@dataclass(frozen=True)
class Case:
    """Damaged files and the command that reads them."""

    name: str  # the kind and the number, "inputs-17": with the seed it makes the case again
    make: Callable[[Path], None]  # writes the files into an empty folder
    run: Callable[
        [Path], Outcome
    ]  # runs a command on them, see :func:`tests.fuzz.command.run_getd`


def faults(outcome: Outcome) -> list[str]:
    """What is wrong with an outcome, in words; nothing where it is as it must be."""
    wrong = []
    if outcome.traceback:
        wrong.append("traceback")
    if outcome.code not in (0, 1, 2):
        wrong.append(f"exit code {outcome.code}")
    if outcome.code != 0 and not outcome.err.strip():
        wrong.append("no message")
    lines = outcome.err.splitlines()
    if outcome.code != 0 and len(_messages(lines)) > MAX_LINES:
        wrong.append(f"{len(lines)} lines of errors")
    if longest_line(outcome) > MAX_LINE:
        wrong.append(f"a message of {longest_line(outcome)} characters")
    if control := _CONTROL.search(outcome.err) or _CONTROL.search(outcome.out):
        wrong.append(f"a raw control character {control.group()!r}")
    if outcome.code == 0 and outcome.out.startswith("{") and not _is_json(outcome.out):
        wrong.append("broken JSON")
    return wrong


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def longest_line(outcome: Outcome) -> int:
    """The length of the longest line on standard error."""
    return max(map(len, outcome.err.split("\n")), default=0)


def _messages(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(("note: ", "epoch "))]

"""``getd --help``: commands in groups, in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from getd.cli.app import COMMANDS, app
from tests.conftest import Result

Getd = Callable[..., Result]
NAMES = [command for commands in COMMANDS.values() for command in commands]
STRANGE = (  # words that make help hard to read
    *("anew", "alike", "beside", "go on", "goes on", "told", "so many", "whoever", "asked for"),
    *("where it", "where none", "where not", "that is there"),
)


def test_help_lists_every_command_once_in_its_group(getd: Getd) -> None:
    out = getd("--help").out
    titles = re.findall(r"^╭─ (\w+) ─", out, re.MULTILINE)
    assert titles == ["Data", "Train", "Use", "Share", "Options"]
    assert re.findall(r"^│ (\w+) ", out, re.MULTILINE) == NAMES


def test_a_summary_takes_one_line_of_a_narrow_terminal(getd: Getd) -> None:
    out = getd("--help").out
    summaries = [line for line in out.splitlines() if line.startswith("│ ")]
    assert len(summaries) == len(NAMES) + 2  # --help and --version
    assert all(line.rstrip("│ ").endswith(".") for line in summaries)


@pytest.mark.parametrize("name", NAMES)
def test_help_explains_every_argument_in_plain_words(getd: Getd, name: str) -> None:
    result = getd(name, "--help")
    assert (result.code, result.err) == (0, "")
    text = " ".join(result.out.replace("│", " ").split())
    assert [words for words in STRANGE if words in text] == []

    arguments = app[name].assemble_argument_collection(parse_docstring=True)
    for argument in arguments:
        if argument.name == "*":  # a group of flags
            continue
        explanation = argument.parameter.help or ""
        assert re.fullmatch(r"[A-Z].*\.", explanation), f"{argument.name}: {explanation}"


def test_old_names_still_work_and_are_not_listed(getd: Getd) -> None:
    assert getd("score", "--help").out == getd("rate", "--help").out.replace(
        "getd rate", "getd score", 1
    )
    assert "score" not in getd("--help").out.split()
    assert (
        getd("score", "nothing", "--suspicious", 3).err
        == getd("rate", "nothing", "--suspicious", 3).err
    )

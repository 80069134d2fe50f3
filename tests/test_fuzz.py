"""Some cases of the fuzzer: every damaged file ends in one clear line. For more: ``python -m
tests.fuzz``.
"""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.campaign import Summary, run_campaign, run_case
from tests.fuzz.case import Case, Outcome, faults
from tests.fuzz.command import run_command, run_getd
from tests.fuzz.targets import TARGETS

N_CASES = {"inputs": 600, "runs": 60}


@pytest.mark.parametrize("kind", TARGETS)
def test_no_damaged_file_brings_a_command_down(kind: str, tmp_path: Path) -> None:
    n_cases = N_CASES[kind]
    summary = run_campaign(
        kind, 0, tmp_path, seconds=math.inf, kept=tmp_path / "kept", last=n_cases, limit=60
    )
    assert summary.failed == []
    assert summary.cases == {kind: n_cases}


@pytest.mark.parametrize("kind", TARGETS)
def test_a_case_can_be_made_again_by_its_number(kind: str, tmp_path: Path) -> None:
    first = list(islice(TARGETS[kind](7, tmp_path, 0), 12))[-1]
    again = next(TARGETS[kind](7, tmp_path, 11))
    written = []
    for place, case in enumerate((first, again)):
        folder = tmp_path / f"case {place}"
        folder.mkdir()
        case.make(folder)
        written.append(
            {
                path.relative_to(folder): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file()
            }
        )
    assert (first.name, written[0]) == (again.name, written[1])


@pytest.mark.parametrize(
    ("outcome", "wrong"),
    [
        (Outcome(0, "fine", "note: fine"), []),
        (Outcome(1, err="a: expected b"), []),
        (Outcome(70, err="x", traceback="Traceback"), ["traceback", "exit code 70"]),
        (Outcome(1), ["no message"]),
        (Outcome(1, err="\n".join("abcdefghijk")), ["11 lines of errors"]),
        (Outcome(1, err="x" * 301), ["a message of 301 characters"]),
        (Outcome(0, out="\x1b[0m"), ["a raw control character '\\x1b'"]),
        (Outcome(0, out='{"a": }'), ["broken JSON"]),
    ],
)
def test_what_is_wrong_with_an_outcome(outcome: Outcome, wrong: list[str]) -> None:
    assert faults(outcome) == wrong


def test_a_case_that_fails_is_kept_with_its_files(tmp_path: Path) -> None:
    def stop() -> None:
        raise ZeroDivisionError

    case = Case(
        "inputs-3",
        lambda folder: (folder / "a").write_text("b") and None,
        lambda _: run_command(stop),
    )
    summary = Summary()
    assert run_case(case, summary, 5, tmp_path) == ["traceback", "exit code 70", "no message"]
    assert (tmp_path / "inputs-3-seed-5" / "files" / "a").read_text() == "b"
    assert "ZeroDivisionError" in (tmp_path / "inputs-3-seed-5" / "case.json").read_text()
    assert summary.lines()[2] == "tracebacks: 1"


def test_a_case_without_end_is_ended(tmp_path: Path) -> None:
    def spin(_: Path) -> Outcome:
        while True:
            pass

    assert run_case(Case("inputs-4", lambda _: None, spin), Summary(), 0, limit=0.2) == ["too slow"]


def test_all_that_a_command_writes_is_seen() -> None:
    outcome = run_getd("--version")
    assert (outcome.code, outcome.out[:5], outcome.err) == (0, "getd ", "")

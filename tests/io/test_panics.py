"""A panic of a Rust library is an error like any other, without its report on the terminal."""

from __future__ import annotations

import os
import sys
import threading
import time

import polars as pl
import pytest

from getd.io.panics import Panic, panics_as_errors


def give_up(report: bytes, error: BaseException) -> None:
    """As a library does that writes to file descriptor 2 first."""
    with panics_as_errors():
        os.write(2, report)
        raise error


def test_a_panic_becomes_an_error_without_its_report(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Panic, match=r"^it gave up$"):
        give_up(
            b"thread 'main' panicked at src/lib.rs\n",
            pl.exceptions.PanicException("it gave up\nat length"),
        )
    assert capfd.readouterr().err == ""


def test_the_report_of_another_thread_that_panics_is_dropped_however_late_it_ends(
    capfd: pytest.CaptureFixture[str],
) -> None:
    has_begun = threading.Event()

    def panic() -> None:
        os.write(2, b"\nthread 'worker' (7) panicked at src/lib.rs:4:1:\n")
        has_begun.set()
        time.sleep(0.01)
        os.write(2, b"stack backtrace:\n")

    def fail() -> None:
        with panics_as_errors():
            worker.start()
            has_begun.wait()
            raise ValueError("broken")

    worker = threading.Thread(target=panic)
    with pytest.raises(ValueError, match=r"^broken$"):
        fail()
    worker.join()
    assert capfd.readouterr().err == ""


def test_what_else_is_said_on_standard_error_meanwhile_is_passed_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with panics_as_errors():
        os.write(2, b"a warning\n")
    with pytest.raises(ValueError, match=r"^no$"):
        give_up(b"another\n", ValueError("no"))
    assert capfd.readouterr().err == "a warning\nanother\n"


def test_what_was_printed_before_a_panic_and_is_still_in_a_buffer_is_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def print_and_panic() -> None:
        with panics_as_errors():
            sys.stderr.write("a report; ")
            raise pl.exceptions.PanicException("it gave up")

    with open(2, "w", closefd=False) as buffered, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", buffered)
        buffered.write("before; ")
        with pytest.raises(Panic, match=r"^it gave up$"):
            print_and_panic()
        buffered.write("after")
    assert capfd.readouterr().err == "before; after"

"""What is shown is one line of bounded length, without characters that act on the screen."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from getd.errors import MAX_COMPARED, MAX_TYPED, ConfigError, FactFileError, UnknownName, nearest
from getd.visible import MAX_LINE, message_line, shorten, visible, visible_json

TURNING = "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # the direction of writing
ACTING = [
    chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp")
] + [*TURNING]


def test_every_acting_character_is_escaped_and_no_other() -> None:
    assert [
        character for character in map(chr, range(0x110000)) if visible(character) != character
    ] == sorted(ACTING)
    assert all(
        visible(character).isascii() and visible(character).isprintable() for character in ACTING
    )
    assert (
        visible("a\tb\n\x1b[31m\x9b\u202e[bold] é 日本") == r"a\tb\n\x1b[31m\x9b\u202e[bold] é 日本"
    )


@given(st.text(st.sampled_from(["a", "é", '"', "\\", "\u202e", *ACTING])))
def test_json_means_the_same_and_carries_none(text: str) -> None:
    written = visible_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert not set(written) & set(ACTING)


@given(st.text(st.sampled_from(["a", "\u202e", "\n"]), max_size=2000), st.integers(3, 400))
def test_a_message_is_one_line_of_bounded_length(text: str, limit: int) -> None:
    assert len(message_line(text, limit)) <= limit
    assert not set(message_line(text, limit)) & set(ACTING)
    assert len(shorten(text, limit)) == min(len(text), limit)


def test_a_long_line_keeps_its_beginning_and_its_end() -> None:
    assert shorten("x" * MAX_LINE) == "x" * MAX_LINE
    assert (
        shorten("expected " + "x" * 500 + " found", 40)
        == "expected xxxxxxxxxxxxxxx…xxxxxxxxx found"
    )


def test_every_error_is_one_line_of_at_most_300_characters() -> None:
    error = ConfigError(f"expected a name, found {'y' * 400}\x1b[0m\nhere")
    assert len(str(error)) == MAX_LINE
    assert str(error).startswith("expected a name, found yyyy")
    assert str(error).endswith(r"yyyy\x1b[0m\nhere")


def test_of_a_long_line_about_a_file_the_message_is_shortened_first() -> None:
    path = Path("/data") / ("folder" * 10) / "train.txt"
    error = str(FactFileError(path, [(":7", f"expected a name, found {'y' * 400}")], 3))
    assert len(error) == MAX_LINE
    assert error.startswith(f"{path}:7: expected a name, found yyy")
    assert error.endswith("yyy (3 bad lines)")
    error = str(
        FactFileError("p" * 500, [(":7", "expected a name, found " + "y" * 400), (":8", "a\nb")], 2)
    )
    assert [len(line) for line in error.split("\n")] == [MAX_LINE, MAX_LINE]
    assert ":7: expected a name, found yyy" in error.split("\n")[0]
    assert error.split("\n")[1].endswith(r":8: a\nb")


def test_the_nearest_name_is_looked_for_only_where_it_is_shown() -> None:
    calls = []
    error = UnknownName("unknown entity 'x'", lambda: calls.append("hint") or "; did you mean 'y'?")  # type: ignore[func-returns-value]
    assert calls == []
    assert str(error) == "unknown entity 'x'; did you mean 'y'?"


def test_of_many_names_those_that_begin_most_alike_are_compared() -> None:
    names = [f"{first}{number:05}" for number in range(MAX_COMPARED) for first in "pqr"]
    assert nearest("q00500x", names) == "; did you mean 'q00500'?"
    assert (
        nearest("x00500", names) == "; did you mean 'r00500'?"
    )  # a p or q would be as near, but begins otherwise


def test_a_very_long_name_has_no_nearest() -> None:
    assert nearest("a" * MAX_TYPED, ["a" * MAX_TYPED]) != ""
    assert nearest("a" * (MAX_TYPED + 1), ["a" * MAX_TYPED]) == ""
    assert nearest("a", ["a" * 10**6]) == ""

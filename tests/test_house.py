"""The package stays easy to read: its measures keep to their bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness import Figure
from benchmarks.house import PACKAGE, Source, exceptions, measure, read_sources

EXAMPLE = '''"""A module."""

LIMIT = 3  # a comment at the end of a line


def first(found, count):
    """Two lines,

    and a blank one.
    """
    # A comment of its own.
    a, b = found, count
    return [a + b for AT_ONCE in range(LIMIT)]


class Second:
    def body(self):
        """Say nothing."""
'''


def function_of(*body: str) -> Source:
    lines = "".join(f"    {line}".rstrip() + "\n" for line in body)
    return Source("example.py", f'def function():\n    """Do it."""\n{lines}')


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return read_sources()


def figures() -> list[Figure]:
    return measure(read_sources())


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_the_package_keeps_to_its_bars(figure: Figure, sources: list[Source]) -> None:
    assert figure.holds, "\n".join([f"{figure.value} {figure.unit}", *exceptions(sources)])


def test_every_file_of_the_package_is_measured(sources: list[Source]) -> None:
    assert "experiments/rows.py" in {source.name for source in sources}
    assert len(sources) == len(list(PACKAGE.rglob("*.py")))


def test_code_lines_are_neither_blank_nor_docstrings_nor_comments() -> None:
    lines = [line.strip() for line in Source("example.py", EXAMPLE).code_lines]
    assert lines == [
        "LIMIT = 3  # a comment at the end of a line",
        "def first(found, count):",
        "a, b = found, count",
        "return [a + b for AT_ONCE in range(LIMIT)]",
        "class Second:",
        "def body(self):",
    ]


def test_expressions_are_counted_with_those_inside_them() -> None:
    assert Source("example.py", "a + f(b)\n").count_expressions() == 5


def test_packed_assignments_have_a_tuple_on_both_sides() -> None:
    assert Source("example.py", EXAMPLE).count_packed_assignments() == 1
    assert Source("example.py", "a, b = f()\nc = 1, 2\na = b = 3\n").count_packed_assignments() == 0


def test_forbidden_names_are_those_of_variables_parameters_and_functions() -> None:
    names = Source("example.py", EXAMPLE).forbidden_names()
    assert sorted(names) == ["example.py:13: AT_ONCE", "example.py:6: found"]
    assert Source("example.py", "def told(): ...\n").forbidden_names() == ["example.py:1: told"]
    assert Source("example.py", "x = found.place\nfoundation = x\n").forbidden_names() == []


def test_the_body_of_a_function_has_no_docstring() -> None:
    (function,) = function_of("a = 1", "", "return a").functions()
    assert (function.n_lines, function.has_paragraphs) == (3, True)
    assert Source("example.py", EXAMPLE).functions()[-1].n_lines == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (["a = 1", "b = 2"], False),
        (["a = 1", "", "b = 2"], True),
        (["a = 1", "# Why.", "b = 2"], True),
        (["a = 1  # why", "b = 2"], False),
        (["a = 1", "", "def inner():", "    return 1", "", "return inner"], False),
    ],
)
def test_paragraphs_are_blank_lines_or_comments_of_their_own(
    body: list[str], expected: bool
) -> None:
    function = function_of(*body).functions()[0]
    assert function.has_paragraphs is expected


def test_what_is_too_long_is_named() -> None:
    source = function_of(*["a = 1"] * 400)
    assert exceptions([source]) == [
        "example.py: 402 lines",
        "example.py:1: function: 400 lines",
    ]


def test_sources_are_read_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "file.py").write_text("a = 1\n")
    (tmp_path / "room" / "file.toml").write_text("a = 1\n")
    assert [source.name for source in read_sources(tmp_path)] == ["room/file.py"]

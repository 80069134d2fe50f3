"""Fragments of code, found wherever they are now: by their tokens, whatever the file, the line
breaks or the indent.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

LAYOUT = {
    tokenize.NEWLINE,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
}
CLOSING = {")", "]", "}"}
WILDCARD = "WILDCARD_"  # what ``$name`` is while it is tokenised


class MutationError(Exception):
    """A mutation that does not fit the code any more."""


@dataclass(frozen=True)
class Token:
    """A token and where its text stands, from 0."""

    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class Edit:
    """A piece of a file and what is to stand in its place."""

    path: Path
    start: int
    stop: int
    text: str

    def apply(self, source: str) -> str:
        """The file with the edit in it."""
        return source[: self.start] + self.text + source[self.stop :]

    def line(self, source: str) -> int:
        """Where it starts, from 1."""
        return source.count("\n", 0, self.start) + 1


def tokens(source: str) -> list[Token]:
    """What a file or a fragment says, without its layout: no comments, line breaks, indents,
    trailing commas.

    >>> [token.text for token in tokens("f(a,  # why\\n  b,\\n)")]
    ['f', '(', 'a', ',', 'b', ')']
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    kept: list[Token] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in LAYOUT:
            continue
        if kept and kept[-1].text == "," and token.string in CLOSING:
            kept.pop()
        start, stop = (starts[row - 1] + column for row, column in (token.start, token.end))
        kept.append(Token(_plain(token.string), start, stop))
    return kept


def fragment_tokens(fragment: str) -> list[str]:
    """The tokens of a fragment, which need not be a whole statement.

    >>> fragment_tokens("if $x:")
    ['if', 'WILDCARD_x', ':']
    """
    text = re.sub(r"\$(\w+)", rf"{WILDCARD}\1", fragment)
    try:
        return [token.text for token in tokens(text)]
    except tokenize.TokenError as error:
        raise MutationError(
            f"expected code whose brackets are closed, found {fragment!r} ({error.args[0]})"
        ) from None


def find(fragment: str, sources: dict[Path, str]) -> tuple[Path, list[Token], dict[str, str]]:
    """Where a fragment stands, and what its wildcards stand for; it must stand in one place alone.

    A wildcard ``$x`` is any one name, the same one wherever it stands.
    """
    wanted = fragment_tokens(fragment)
    matches = [
        (path, match, names)
        for path, source in sources.items()
        for match, names in _matches(wanted, cached(source))
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        places = ", ".join(
            f"{path.name}:{_line(sources[path], match[0].start)}" for path, match, _ in matches
        )
        raise MutationError(
            f"expected one place that says\n    {fragment}\nfound {len(matches)}: {places}"
        )
    nearest = _nearest(wanted, sources)
    raise MutationError(
        f"expected one place that says\n    {fragment}\nfound none; nearest: {nearest}"
    )


def edit(fragment: str, becomes: str, sources: dict[Path, str], beside: str = "") -> Edit:
    """The edit that puts another fragment in the place of one; its further lines are indented as
    the first.

    ``beside``: another fragment that stands in the same file, where one alone does not tell the
    place.
    """
    if beside:
        wanted = fragment_tokens(beside)
        sources = {
            path: source
            for path, source in sources.items()
            if next(_matches(wanted, cached(source)), None)
        }
    path, match, names = find(fragment, sources)
    for name, value in names.items():
        becomes = re.sub(rf"\${name}\b", value, becomes)

    source = sources[path]
    line = source[source.rfind("\n", 0, match[0].start) + 1 : match[0].start]
    indent = " " * (len(line) - len(line.lstrip()))
    change = Edit(
        path, match[0].start, match[-1].stop, becomes.strip("\n").replace("\n", f"\n{indent}")
    )
    try:
        ast.parse(change.apply(source))
    except SyntaxError as error:
        raise MutationError(f"expected Python, found {becomes!r}: {error.msg}") from None
    return change


def read_sources(package: Path) -> dict[Path, str]:
    """Every file of the package."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}


@cache
def cached(source: str) -> tuple[Token, ...]:
    """The tokens of a file."""
    return tuple(tokens(source))


def _plain(text: str) -> str:
    """A string with the quotes that most have."""
    if (
        len(text) > 1
        and text[0] == text[-1] == "'"
        and '"' not in text
        and not text.startswith("'''")
    ):
        return f'"{text[1:-1]}"'
    return text


def _matches(
    wanted: Sequence[str], code: Sequence[Token]
) -> Iterator[tuple[list[Token], dict[str, str]]]:
    for start in range(len(code) - len(wanted) + 1):
        names = _same(wanted, code, start)
        if names is not None:
            yield list(code[start : start + len(wanted)]), names


def _same(wanted: Sequence[str], code: Sequence[Token], start: int) -> dict[str, str] | None:
    """What the wildcards stand for, where the code says what is wanted."""
    names: dict[str, str] = {}
    for place, text in enumerate(wanted):
        found = code[start + place].text
        if text.startswith(WILDCARD):
            is_name = found.isidentifier() and not keyword.iskeyword(found)
            if not is_name or names.setdefault(text.removeprefix(WILDCARD), found) != found:
                return None
        elif text != found:
            return None
    return names


def _line(source: str, place: int) -> int:
    return source.count("\n", 0, place) + 1


def _nearest(wanted: Sequence[str], sources: dict[Path, str]) -> str:
    """The line that shares most with a fragment, for whoever has to write it anew."""
    best, where = 0.0, "nothing like it"
    matcher = SequenceMatcher(b=list(wanted), autojunk=False)
    for path, source in sources.items():
        for number, line in enumerate(source.splitlines(), 1):
            matcher.set_seq1(re.findall(r"\w+|[^\w\s]", line))
            if (
                matcher.real_quick_ratio() > best
                and matcher.quick_ratio() > best
                and matcher.ratio() > best
            ):
                best, where = matcher.ratio(), f"{path.name}:{number}: {line.strip()}"
    return where

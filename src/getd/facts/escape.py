r"""Names with tabs and line ends, escaped to stay on one line: ``\\``, ``\t``, ``\n``, ``\r``."""

import re

import polars as pl

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_CHARACTERS = {written: character for character, written in _ESCAPES.items()}
_WRONG = re.compile(r"(?:^|[^\\])(?:\\\\)*(\\(?:[^\\tnr]|$))", re.DOTALL)


def escape(name: str) -> str:
    r"""Write a name on one line, without tabs.

    >>> print(escape("a\tb\\c"))
    a\tb\\c
    """
    return "".join(_ESCAPES.get(character, character) for character in name)


def wrong_escape(text: str) -> str | None:
    r"""The first escape in a text that :func:`escape` never writes, if there is one.

    >>> wrong_escape(r"fine\tfine"), wrong_escape(r"C:\data")
    (None, '\\d')
    """
    match = _WRONG.search(text)
    return match.group(1) if match else None


def escape_names(names: pl.Series) -> pl.Series:
    """:func:`escape` for a whole column."""
    return names.str.replace_many(_ESCAPES)


def unescape_names(names: pl.Series) -> pl.Series:
    """Read back what :func:`escape` wrote, for a whole column."""
    return names.str.replace_many(_CHARACTERS)

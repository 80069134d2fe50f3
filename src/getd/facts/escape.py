r"""Names with tabs and line ends, escaped to stay on one line: ``\\``, ``\t``, ``\n``, ``\r``."""

from __future__ import annotations

import re

import polars as pl

_PAIRS = (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_WRONG = re.compile(r"(?:^|[^\\])(?:\\\\)*(\\(?:[^\\tnr]|$))", re.DOTALL)


def escape(name: str) -> str:
    r"""Write a name on one line, without tabs.

    >>> print(escape("a\tb\\c"))
    a\tb\\c
    """
    name = name.replace("\\", "\\\\")
    for character, written in _PAIRS:
        name = name.replace(character, written)
    return name


def wrong_escape(text: str) -> str | None:
    r"""The first escape in a text that :func:`escape` never writes, if there is one.

    >>> wrong_escape(r"fine\tfine"), wrong_escape(r"C:\data")
    (None, '\\d')
    """
    match = _WRONG.search(text)
    return match.group(1) if match else None


def escape_expr(column: pl.Expr) -> pl.Expr:
    """:func:`escape` for a whole column."""
    column = column.str.replace_all("\\", "\\\\", literal=True)
    for character, written in _PAIRS:
        column = column.str.replace_all(character, written, literal=True)
    return column


def unescape_expr(column: pl.Expr) -> pl.Expr:
    """Read back what :func:`escape` wrote, for a whole column."""
    column = column.str.replace_all("\\\\", "\0", literal=True)  # no name has a NUL
    for character, written in _PAIRS:
        column = column.str.replace_all(written, character, literal=True)
    return column.str.replace_all("\0", "\\", literal=True)

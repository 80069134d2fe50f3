"""Tables, lines and notices for people; JSON for programs.

Everything that a command prints goes through here: text from files is made visible
(:mod:`getd.visible`), and no name is read as markup.
"""

import codecs
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from getd.visible import message_line, visible, visible_json

MAX_CELL = 1000  # characters; JSON has the whole text
SMALLEST_FIXED = 0.00005  # smaller numbers would round to 0.0000


class PlainConsole(Console):
    """A console that reads no markup and leaves a closed pipe to the command line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_json(value: Any) -> None:
    """Print one JSON object; control characters, and those that the encoding lacks, are escaped."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    print(visible_json(json.dumps(value, ensure_ascii=not is_utf8, allow_nan=False)))


def print_line(text: str = "") -> None:
    """Print one line on standard output."""
    print(visible(text), flush=True)


def print_message(text: str) -> None:
    """Print one line of bounded length on standard error."""
    print(message_line(text), file=sys.stderr, flush=True)


def print_notices(notices: Iterable[str]) -> None:
    """Print messages for the user on standard error."""
    for notice in notices:
        print_message(f"note: {notice}")


def print_table(
    title: str, header: Sequence[str], rows: Iterable[Iterable[object]], left: int = 1
) -> None:
    """Print a table; the first ``left`` columns are text, the others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, name in enumerate(header):
        justify: JustifyMethod = "left" if column < left else "right"
        table.add_column(visible(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))

    # Where there is no terminal, the table is wide enough to cut nothing.
    out = PlainConsole() if sys.stdout.isatty() else PlainConsole(width=160)
    out.print(visible(title), style="bold", soft_wrap=True)
    out.print(table)
    out.print()


def cell(value: object) -> str:
    """Format a value for a table: 12,345, 0.2500, true, or a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        is_fixed = value == 0 or abs(value) >= SMALLEST_FIXED
        return f"{value:.4f}" if is_fixed else f"{value:.1e}"
    return message_line(str(value), MAX_CELL)


def fact_text(fact: Sequence[str]) -> str:
    """Write a fact as people do.

    >>> fact_text(["award", "Jordan", "MVP"])
    'award(Jordan, MVP)'
    """
    relation, *entities = fact
    return f"{relation}({', '.join(entities)})"

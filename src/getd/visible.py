r"""Text from files as a terminal, a page or a log may show it: nothing in it acts on the reader's screen.

Control characters (with them escape sequences), line and paragraph separators, and the characters that turn the
direction of writing are shown as Python would write them. Names keep them: only what is *shown* goes through here.
"""

from __future__ import annotations

import re

MAX_LINE = 300  # characters of a message
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""The text on one line, with every control character escaped.

    >>> print(visible("a\x1b[31mb\nc\u202ed"))
    a\x1b[31mb\nc\u202ed
    """
    return _HIDDEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    r"""JSON text that means the same, with every control character escaped.

    >>> print(visible_json('"a\x9bb"'))
    "a\u009bb"
    """
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shorten(text: str, limit: int = MAX_LINE) -> str:
    """The text where it is short enough, else its beginning and its end.

    >>> shorten("expected a name, found abcdefghijklmnopqrstuvwxyz (1 bad line)", 40)
    'expected a name, found a…yz (1 bad line)'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 5
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def message_line(text: str, limit: int = MAX_LINE) -> str:
    """A message as one line: visible, and not too long."""
    return shorten(visible(shorten(text, 4 * limit)), limit)

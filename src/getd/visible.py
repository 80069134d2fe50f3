r"""Text from files, made safe to show: nothing in it acts on the reader's terminal, page or log.

Control characters (and so escape sequences), line and paragraph separators, and characters that
change the writing direction are shown as Python writes them. Names keep these characters: only
text that is *shown* passes through this module.
"""

import re

MAX_LINE = 300  # characters of a message
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Put a text on one line and escape every control character.

    >>> print(visible("a\x1b[31mb\nc\u202ed"))
    a\x1b[31mb\nc\u202ed
    """
    return _HIDDEN.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    r"""Escape every control character of a JSON text; its meaning stays the same.

    >>> print(visible_json('"a\x9bb"'))
    "a\u009bb"
    """
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def shorten(text: str, limit: int = MAX_LINE) -> str:
    """Cut the middle out of a text that is too long.

    >>> shorten("expected a name, found abcdefghijklmnopqrstuvwxyz (1 bad line)", 40)
    'expected a name, found a…yz (1 bad line)'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) * 2 // 5
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def lower_first(text: str) -> str:
    """Begin a text with a small letter, to go on with after a colon."""
    return text[:1].lower() + text[1:]


def message_line(text: str, limit: int = MAX_LINE) -> str:
    """Make a text one line of a message: visible, and not too long."""
    return shorten(visible(shorten(text, 4 * limit)), limit)

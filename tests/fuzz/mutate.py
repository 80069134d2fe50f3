"""Damage done to bytes, to lines and to JSON, by a seeded generator."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

Mutator = Callable[[Random, bytes], bytes]

CONTROL = [
    chr(code)
    for code in (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
]
CONTROL += ["\u2028", "\u2029", "\u061c", "\ufeff", "\u200f"]
SEQUENCES = ["\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b[31m", "\x9b31m", "\r\n", "\u202eabc\u202c"]
SEQUENCES += ["[bold]", "[/]", ":smile:"]
RAW = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\xfe\xff",
]
RAW += [b"PAR1", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]
TOKENS = [
    token.encode() for token in (*"\"',;\t \n\r\\{}[]:?=#", "\r\n", "\\u0000", "\\ud800", "\\x")
]
TOKENS += [b"null", b"NaN", b"-Infinity", b"true", b"1e999", b"relation", b"roles", b"e1"]
NUMBERS = [
    "0",
    "-1",
    "1e308",
    "1e999",
    "9" * 25,
    "9" * 5000,
    "0x10",
    "1_000",
    "-0.0",
    "NaN",
    "2147483648",
    "1e-400",
]


def mutate(random: Random, data: bytes) -> bytes:
    """Some damage, or several kinds of it."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        data = random.choice(MUTATORS)(random, data)
    return data


def _place(random: Random, data: bytes) -> int:
    return random.randrange(len(data) + 1)


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = _place(random, data)
    return start, min(len(data), start + 1 + int(random.expovariate(0.1)))


def _insert(random: Random, data: bytes, more: bytes) -> bytes:
    place = _place(random, data)
    return data[:place] + more + data[place:]


def flip_bits(random: Random, data: bytes) -> bytes:
    """One bit or a few."""
    damaged = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8)) if data else 0):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def set_bytes(random: Random, data: bytes) -> bytes:
    """Some bytes at random, as a broken disk has them."""
    start, stop = _span(random, data)
    return data[:start] + random.randbytes(stop - start) + data[stop:]


def truncate(random: Random, data: bytes) -> bytes:
    """Cut short."""
    return data[: _place(random, data)]


def delete(random: Random, data: bytes) -> bytes:
    """Without a chunk."""
    start, stop = _span(random, data)
    return data[:start] + data[stop:]


def duplicate(random: Random, data: bytes) -> bytes:
    """A chunk several times."""
    start, stop = _span(random, data)
    return data[:stop] + data[start:stop] * random.choice((1, 2, 50)) + data[stop:]


def swap(random: Random, data: bytes) -> bytes:
    """Two neighbouring chunks in the other order."""
    first, second, third = sorted(_place(random, data) for _ in range(3))
    return data[:first] + data[second:third] + data[first:second] + data[third:]


def insert_token(random: Random, data: bytes) -> bytes:
    """What has a meaning in some form."""
    return _insert(random, data, random.choice(TOKENS))


def insert_raw(random: Random, data: bytes) -> bytes:
    """Bytes that are no text."""
    return _insert(random, data, random.choice(RAW))


def insert_control(random: Random, data: bytes) -> bytes:
    """Characters that act on a terminal."""
    return _insert(random, data, random.choice(random.choice((CONTROL, SEQUENCES))).encode())


def insert_number(random: Random, data: bytes) -> bytes:
    """A number that few programs like."""
    return _insert(random, data, random.choice(NUMBERS).encode())


def insert_long(random: Random, data: bytes) -> bytes:
    """A long name, row or nest."""
    unit = random.choice(
        (
            b"a",
            b"a,",
            b"a\t",
            b"a ",
            b"[",
            b'{"a":',
            b'"',
            b"\\",
            b"\xc3\xa9",
            b"\n",
            b"\x1b",
            b" ",
            b"a.",
            b"[[",
        )
    )
    return _insert(random, data, unit * random.choice((300, 2000, 2000, 20_000)))


def begin_with_mark(_: Random, data: bytes) -> bytes:
    """A byte order mark."""
    return b"\xef\xbb\xbf" + data


def other_line_ends(random: Random, data: bytes) -> bytes:
    """As other systems end their lines."""
    return data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\xe2\x80\xa8")))


def other_separator(random: Random, data: bytes) -> bytes:
    """Other separators than the form has."""
    return data.replace(
        random.choice((b"\t", b",", b" ")), random.choice((b"\t", b",", b" ", b";", b"|"))
    )


def shuffle_lines(random: Random, data: bytes) -> bytes:
    """The lines in another order."""
    lines = data.split(b"\n")
    random.shuffle(lines)
    return b"\n".join(lines)


def drop_field(random: Random, data: bytes) -> bytes:
    """A line with a field fewer, or an empty one."""
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    fields = lines[place].split(b",")
    fields[random.randrange(len(fields))] = b""
    lines[place] = b",".join(fields if random.random() < 0.5 else filter(None, fields))
    return b"\n".join(lines)


def change_json(random: Random, data: bytes) -> bytes:
    """A value of a JSON line of another type, or under another key."""
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    try:
        record = json.loads(lines[place])
    except (ValueError, RecursionError):
        return data
    lines[place] = json.dumps(_changed(random, record), ensure_ascii=random.random() < 0.5).encode(
        errors="replace"
    )
    return b"\n".join(lines)


def _changed(random: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        if random.random() < 0.3:
            return {
                (odd_text(random) if other == key else other): item for other, item in value.items()
            }
        return value | {key: _changed(random, value[key])}
    if isinstance(value, list) and value and random.random() < 0.8:
        place = random.randrange(len(value))
        return [*value[:place], _changed(random, value[place]), *value[place + 1 :]]
    return odd_value(random)


def odd_value(random: Random) -> Any:
    """A value that is seldom expected."""
    plain: list[Any] = [
        None,
        True,
        0,
        -1,
        1.5,
        1e300,
        10**30,
        "",
        [],
        {},
        [[]],
        [None],
        {"": ""},
        {"a": {"b": []}},
    ]
    return random.choice(
        (*plain, odd_text(random), [odd_text(random)], {odd_text(random): odd_text(random)})
    )


def odd_text(random: Random) -> str:
    """A text that is hard to show."""
    return (
        random.choice(("a", "", "é", "日本", "a" * 400))
        + random.choice((*CONTROL, *SEQUENCES, "b"))
        + "c"
    )


MUTATORS: tuple[Mutator, ...] = (
    *(
        flip_bits,
        set_bytes,
        truncate,
        delete,
        duplicate,
        swap,
        insert_token,
        insert_raw,
        insert_control,
    ),
    *(
        insert_number,
        insert_long,
        begin_with_mark,
        other_line_ends,
        other_separator,
        shuffle_lines,
        drop_field,
    ),
    *(change_json, change_json, insert_token, insert_control, flip_bits),
)

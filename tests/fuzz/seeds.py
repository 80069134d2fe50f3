"""Sound files of every form, from which damaged ones are made; and files of shapes that nobody
expects.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import zstandard

from tests.fuzz.mutate import odd_text

FACTS = [
    ("plays", "Ada", "Oxbow"),
    ("plays", "Bea", "Oxbow"),
    ("plays", "Cem", "Rovers"),
    ("moves", "Ada", "Oxbow", "Rovers", "2016-17"),
    ("moves", "Bea", "Rovers", "Oxbow", "2017-18"),
    ("plays", "Dan", "Rovers"),
]
ROLES = {"plays": ("who", "club"), "moves": ("who", "from", "to", "season")}


def _lines(rows: list[str]) -> bytes:
    return "\n".join([*rows, ""]).encode()


def _records() -> list[dict[str, Any]]:
    return [{"relation": r, "entities": dict(zip(ROLES[r], e, strict=True))} for r, *e in FACTS]


def _wikipeople() -> list[dict[str, Any]]:
    triples = [
        {"P1_h": "Ada", "P1_t": "Oxbow", "N": 2},
        {"P1_h": "Bea", "P1_t": "Oxbow", "P2": ["x", "y"], "N": 4},
    ]
    return [*triples, {"P3_h": "Cem", "P3_t": "Rovers", "P4": "z", "N": 3}]


def _parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, **options)
    return file.getvalue()


def _positional() -> pl.DataFrame:
    names = ("relation", "e1", "e2", "e3", "e4")
    rows = [[*fact, *[None] * (5 - len(fact))] for fact in FACTS]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


SEEDS: dict[str, bytes] = {
    "facts.tsv": _lines(["\t".join(fact) for fact in FACTS]),
    "facts.txt": _lines([" ".join(fact) for fact in FACTS]),
    "escaped.tsv": _lines(["r\ta\\tb\tc\\\\d", "r\te\\nf\tg"]),
    "facts.csv": _lines(
        ["relation,e1,e2,e3,e4", *(",".join([*f, *[""] * (5 - len(f))]) for f in FACTS)]
    ),
    "roles.csv": _lines(
        ["who,club,season", "Ada,Oxbow,2016", 'Bea,"Oxbow, United",2017', '"C ""em""",Rovers,2018']
    ),
    "semicolon.csv": _lines(["relation;who;club", "plays;Ada;Oxbow", "plays;Bea;Rovers"]),
    "signed.csv": _lines(
        ["relation,roles,e1,e2", 'r,"[""a"", ""b""]",x,y', 'r,"[""a"", ""c""]",x,z']
    ),
    "hyper.csv": _lines(
        ["Ada,plays,Oxbow", "Bea,plays,Oxbow,since,2016", "Cem,plays,Rovers,since,2017,as,keeper"]
    ),
    "facts.jsonl": _lines([json.dumps({"relation": r, "entities": e}) for r, *e in FACTS]),
    "roles.jsonl": _lines([json.dumps(record) for record in _records()]),
    "signed.jsonl": _lines(
        ['{"relation": "r", "roles": ["a", "b", "a"], "entities": ["x", "y", "z"]}'] * 2
    ),
    "wikipeople.json": _lines([json.dumps(record) for record in _wikipeople()]),
    "facts.parquet": _parquet(_positional()),
    "plain.parquet": _parquet(_positional(), compression="uncompressed", statistics=False),
    "snappy.parquet": _parquet(_positional(), compression="snappy", row_group_size=2),
    "facts.tsv.gz": gzip.compress(_lines(["\t".join(fact) for fact in FACTS]), mtime=0),
    "facts.jsonl.zst": zstandard.compress(_lines([json.dumps(record) for record in _records()])),
    "facts.csv.zst": zstandard.compress(_lines(["who,club", "Ada,Oxbow"])) * 2,
}

QUESTIONS: dict[str, bytes] = {
    "questions.tsv": _lines(["plays\t?\tOxbow", "moves\tAda\t?\tRovers\t?", "?\tAda\tOxbow"]),
    "questions.jsonl": _lines(['{"relation": "plays", "entities": {"who": "?", "club": "Oxbow"}}']),
    "questions.csv": _lines(["relation,who,club", "plays,?,Oxbow", "plays,Ada,?"]),
}

CONFIG = b"""data = "missing.tsv"

[model]
name = "getd"
entity_dim = 8
relation_dim = 8
ring_ranks = [2, 2, 2, 2]

[training]
epochs = 2
learning_rate = 1e-3
regime = "1vsall"
seed = 7

[memory]
use = false

[published]
mrr = 0.5
"""

SPACE = b"""[model.entity_dim]
choices = [8, 16]

[training.learning_rate]
low = 1e-4
high = 1e-2
log = true
"""


def typed_parquet(random: Random) -> bytes:
    """A sound Parquet file whose columns hold anything but text."""
    columns = random.sample(_TYPED, random.randrange(1, 4))
    names = random.sample(["relation", "e1", "e2", "roles", "who", odd_text(random)], len(columns))
    return _parquet(
        pl.DataFrame([series.alias(name) for series, name in zip(columns, names, strict=True)])
    )


_TYPED: list[pl.Series] = [
    pl.Series([1, 2, None]),
    pl.Series([2**63 - 1, -(2**63), 0]),
    pl.Series([1.5, float("nan"), float("inf")]),
    pl.Series([True, None, False]),
    pl.Series([date(1, 1, 1), date(9999, 12, 31), None]),
    pl.Series([datetime(1900, 1, 1), None, datetime(2100, 1, 1)]),
    pl.Series([time(1, 2, 3), None, time(0)]),
    pl.Series([timedelta(days=1), None, timedelta(0)]),
    pl.Series([Decimal("1.50"), None, Decimal("-3")]),
    pl.Series([b"\xff\x00", b"a", None]),
    pl.Series([["a"], [], None]),
    pl.Series([{"a": 1}, None, {"a": 2}]),
    pl.Series(["a", "b", "a"], dtype=pl.Categorical),
    pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
    pl.Series([None, None, None]),
    pl.Series(["x", "\x1b[31m", "z\0"]),
    pl.Series([["a", "b"], ["c", "d"], ["e", "f"]]),
]


def _many_roles(n: int) -> tuple[str, bytes]:
    records = [
        {"relation": f"r{i % 3}", "entities": {f"a{i}": "x", f"b{i}": f"y{i % 7}"}}
        for i in range(n)
    ]
    return "facts.jsonl", _lines([json.dumps(record) for record in records])


def _many_relations(n: int) -> tuple[str, bytes]:
    return "facts.tsv", _lines([f"r{i}\ta{i}\tb" for i in range(n)])


def _many_arities(n: int) -> tuple[str, bytes]:
    return "facts.tsv", _lines(["r\t" + "\t".join(["a"] * i) for i in range(1, min(n, 60))])


def _wide(n: int) -> tuple[str, bytes]:
    return "facts.txt", _lines(["r " + "a b " * n, "r a"])


def _wide_header(n: int) -> tuple[str, bytes]:
    return "facts.csv", _lines([",".join(f"c{i}" for i in range(n)), *["a"] * min(n, 200)])


def _many_signatures(n: int) -> tuple[str, bytes]:
    return "facts.csv", _lines(["relation,roles,e1", *(f'r,"[""a{i}""]",x' for i in range(n))])


def _many_qualifiers(n: int) -> tuple[str, bytes]:
    return "facts.csv", _lines([f"a,r,b,q{i},v" for i in range(n)])


def _sparse_table(n: int) -> tuple[str, bytes]:
    n = min(n, 120)
    rows = [
        f"r{i}," + ",".join("x" if j in (i, (i * 7) % n) else "" for j in range(n))
        for i in range(n)
    ]
    return "facts.csv", _lines(["relation," + ",".join(f"c{i}" for i in range(n)), *rows])


def _unknown_names(n: int) -> tuple[str, bytes]:
    return "facts.tsv", _lines([f"plays\tAdda{i}\tOxbo" for i in range(n)])


def _open_quotes(n: int) -> tuple[str, bytes]:
    return "facts.csv", _lines(["a,b", *['"x,y'] * n])


def _blank(n: int) -> tuple[str, bytes]:
    return "facts.tsv", b"\n \r\n" * n + b"r\ta\tb\n"


SHAPES: tuple[Callable[[int], tuple[str, bytes]], ...] = (
    *(
        _many_roles,
        _many_relations,
        _many_arities,
        _wide,
        _wide_header,
        _many_signatures,
        _many_qualifiers,
    ),
    *(_sparse_table, _unknown_names, _open_quotes, _blank),
)

"""Which form a file is in, and the reader for it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import get_args

from getd.choices import ReadFormat
from getd.errors import FactFileError
from getd.facts.named import NamedFacts
from getd.facts.role_order import RoleOrder
from getd.formats.hyper_relational import read_hyper_csv
from getd.formats.json_lines import looks_like_wikipeople, read_jsonl, read_wikipeople
from getd.formats.plain_text import read_text
from getd.formats.tables import read_csv, read_parquet
from getd.io.lines import MAX_LINE, read_head, read_pieces

FORMATS: tuple[ReadFormat, ...] = get_args(ReadFormat)
ENDINGS = (".txt", ".tsv", ".csv", ".parquet", ".jsonl", ".ndjson", ".json")
COMPRESSED = (".gz", ".zst")


def ending(path: Path) -> str:
    """The ending that tells the form, without that of a compression.

    >>> ending(Path("facts/train.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem(path: Path) -> str:
    """The file's name without its ending and that of a compression.

    >>> stem(Path("facts/v1.train.txt.gz"))
    'v1.train'
    """
    name = path.name
    for _ in range(2):
        head, dot, last = name.rpartition(".")
        if head and dot and f".{last.lower()}" in (*ENDINGS, *COMPRESSED):
            name = head
    return name


def read_named(
    path: Path,
    form: ReadFormat | None = None,
    escaped: bool = False,
    relation: str | None = None,
    order: RoleOrder | None = None,
) -> NamedFacts:
    """Read one file of facts.

    Parameters
    ----------
    form
        The form; recognised from the content where it is not given.
    escaped
        Read ``\\t`` and the like in plain text as the characters they stand for.
    relation
        The relation of a table that has no ``relation`` column; the file's name where it is not given.
    order
        The order of roles seen so far; files of one data set share it.
    """
    form = form or detect_format(path)
    relation = relation or stem(path)
    order = order or RoleOrder()
    readers = {
        "tsv": lambda: read_text(path, escaped),
        "csv": lambda: read_csv(path, relation, order),
        "parquet": lambda: read_parquet(path, relation, order),
        "jsonl": lambda: read_jsonl(path, order),
        "hyper-csv": lambda: read_hyper_csv(path),
        "wikipeople": lambda: read_wikipeople(path),
    }
    labels = readers[form]()
    if len(labels) == 0:
        raise FactFileError(path, [("", "expected facts, found only blank lines")])
    return labels


def detect_format(path: Path) -> ReadFormat:
    """Recognise the form from the first lines, with the file's ending as a hint where they leave a choice."""
    head = read_head(path)
    if head.startswith(b"PAR1") and (b"\0" in head or ending(path) == ".parquet"):
        return "parquet"
    if b"\0" in head or len(head) == 0 or not _is_text(head):
        next(read_pieces(path))  # says what is wrong
    lines = [line for line in head.decode("utf-8", errors="replace").split("\n") if line.strip()]
    first = lines[0].rstrip("\r") if lines else ""
    if "\t" in first and ending(path) in (".tsv", ".txt"):
        return "tsv"
    if first.lstrip().startswith(("{", "[")) and ending(path) not in (".csv", ".tsv"):
        return _detect_json(path, first)
    if ending(path) == ".csv" or ("," in first and "\t" not in first and " " not in first.strip()):
        return _detect_csv(lines[:-1] if len(head) == MAX_LINE else lines)
    return "tsv"


def _is_text(head: bytes) -> bool:
    try:
        head[: head.rfind(b"\n") + 1].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _detect_json(path: Path, first: str) -> ReadFormat:
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl" if ending(path) in (".jsonl", ".ndjson", ".json") else "tsv"
    if looks_like_wikipeople(record):
        return "wikipeople"
    return "jsonl"


def _detect_csv(lines: list[str]) -> ReadFormat:
    """Hyper-relational rows have an odd number of fields, no header, and the first row's relation comes again."""
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        return "csv"
    if not rows or "relation" in [name.strip().lower() for name in rows[0]]:
        return "csv"
    odd = all(len(row) % 2 == 1 and len(row) >= 3 for row in rows)
    return "hyper-csv" if odd and any(row[1] == rows[0][1] for row in rows[1:]) else "csv"

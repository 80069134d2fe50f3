"""Tables of facts, and CSV with a header.

A table has a ``relation`` column, or all its rows are facts of one relation. Other columns are:

- ``e1, e2, …``: positions. The last cells of a fact with fewer entities are empty. A column
  ``roles``, if there is one, holds the role names of each fact as a JSON list.
- any other names: roles. Every row of a relation fills the roles that any of its rows fills.

In CSV, a first column without a name may be the index that pandas and R write; it is left out.
"""

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

from getd.errors import FactFileError
from getd.facts.columns import Columns, columns_to_named
from getd.facts.frames import check_header
from getd.facts.named import NamedFacts
from getd.facts.relation import Relation, default_roles
from getd.formats.csv_rows import (
    LONE_RETURN,
    allow_long_fields,
    looks_like_csv,
    read_csv_rows,
    report,
)
from getd.formats.format import Format, ReadOptions
from getd.io.lines import MAX_LINE, read_head
from getd.io.problems import Problems
from getd.visible import shorten

SEPARATORS = ",;\t|"
INDEX = r"^-?(0|[1-9]\d*)$"  # what a column without a name holds if it is an index


def read_csv(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts; of comma, semicolon, tab and bar, that which the header has most separates."""
    header, separator, header_line = _read_header(path)
    width = len(header)
    expected = f"expected {width} fields ({shorten(', '.join(header), 150)})"
    hint = ""
    if width % 2 == 1 and width >= 3 and "relation" not in map(str.lower, header):
        hint = "; for rows without a header there is --format hyper-csv"

    parts = []
    problems = Problems(path)
    for rows in read_csv_rows(path, separator, problems):
        n_fields = rows.width - 1
        is_filled = pl.any_horizontal(pl.exclude("line").is_not_null())
        body = rows.filter((pl.col("line") > header_line) & is_filled)
        if n_fields == width:
            parts.append(body)
        else:
            report(body, problems, f"{expected}, found {n_fields}{hint}")
    problems.check()
    if sum(map(len, parts)) == 0:
        raise FactFileError(path, "expected rows below the header, found none")

    table = pl.concat(parts).sort("line")
    cells = table.drop("line").select(pl.all().fill_null(""))
    columns = Columns(header, cells, table["line"], problems)
    if header[0]:
        return columns_to_named(columns, options.relation, options.role_order)

    _check_index(path, cells["0"], header_line)
    columns = columns.select(range(1, width))
    named = columns_to_named(columns, options.relation, options.role_order)
    notice = f"{path}: left out the first column: it has no name and only numbers the rows"
    return replace(named, notices=(notice, *named.notices))


def _check_index(path: Path, cells: pl.Series, header_line: int) -> None:
    """Check that a first column without a name is an index, as pandas and R write it."""
    is_index = cells.str.contains(INDEX).all() and cells.n_unique() == len(cells)
    if not is_index:
        check_header(path, [""], f":{header_line}")


def _read_header(path: Path) -> tuple[list[str], str, int]:
    """The column names, what separates them, and the line that they are on."""
    text = read_head(path, 4 * MAX_LINE).decode("utf-8", errors="replace")
    body = text.lstrip("\r\n")
    first = body.split("\n", 1)[0]
    line = text[: len(text) - len(body)].count("\n") + 1
    separator = _separator(first)

    allow_long_fields()
    try:
        fields = next(csv.reader([first.rstrip("\r")], delimiter=separator, strict=True), [])
    except csv.Error as error:
        wrong = f"a broken one ({error})"
        if "\r" in first:
            wrong = LONE_RETURN
        problem = (f":{line}", f"expected a header of CSV, found {wrong}")
        raise FactFileError(path, [problem]) from None

    header = [name.strip() for name in fields]
    n_indexes = int(len(header) > 1 and header[0] == "")
    check_header(path, header[n_indexes:], f":{line}", first=1 + n_indexes)
    return header, separator, line


def _separator(header: str) -> str:
    """What separates the fields of a header; quotation marks hide what is between them.

    >>> _separator("Name, first name;product;shop"), _separator("a|b"), _separator('"a;b;c",d')
    (';', '|', ',')
    """
    marks = re.sub('"[^"]*"', "", header)
    return max(SEPARATORS, key=marks.count)  # the first of several


def write_csv(facts: NamedFacts, path: Path, relations: Iterable[Relation]) -> None:
    """Write facts as a table; fields are quoted where they must be."""
    with path.open("wb") as file:  # polars would expand a path
        to_table(facts).write_csv(file, quote_style="necessary")


def to_table(facts: NamedFacts) -> pl.DataFrame:
    """Facts as columns ``relation``, ``e1 … en``, and ``roles`` where a relation names them."""
    role_texts: list[str | None] = []
    for roles in facts.signatures:
        is_default = roles == default_roles(len(roles))
        role_texts.append(None if is_default else json.dumps(roles, ensure_ascii=False))
    texts = pl.Series("roles", role_texts, dtype=pl.String)

    parts = []
    for arity, block in facts.blocks.items():
        part = facts.texts(arity)
        part.columns = ["relation", *default_roles(arity)]
        part.insert_column(0, pl.Series("row", block.row))
        part.insert_column(2, texts.gather(block.signature))
        parts.append(part)

    # A fact with fewer entities than others has empty cells.
    table = pl.concat(parts, how="diagonal").sort("row", maintain_order=True).drop("row")
    return table if any(role_texts) else table.drop("roles")


CSV = Format("csv", read_csv, write_csv, (".csv",), looks_like_csv)

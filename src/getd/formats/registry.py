"""The file formats of facts: one table, and the way to its readers and writers.

A new format is a file of this folder, a line in ``FORMATS``, and a word in ``getd.choices``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import polars as pl

from getd.choices import ReadFormat, WriteFormat
from getd.errors import FactFileError
from getd.facts.encode import relations_of
from getd.facts.named import NamedFacts
from getd.facts.relation import Relation
from getd.formats.format import COMPRESSED, Format, Head, ReadOptions, ending
from getd.formats.hyper_relational import is_hyper_csv, read_hyper_csv, write_hyper_csv
from getd.formats.json_lines import is_jsonl, read_jsonl, write_jsonl
from getd.formats.parquet import is_parquet, read_parquet, write_parquet
from getd.formats.plain_text import is_tab_separated, read_text, write_text
from getd.formats.tables import is_csv, read_csv, write_csv
from getd.formats.wikipeople import is_wikipeople, read_wikipeople
from getd.io.lines import read_head

# In the order of recognition: the first whose sniff says yes.
FORMATS: dict[ReadFormat, Format] = {
    form.name: form
    for form in (
        Format("parquet", read_parquet, write_parquet, (".parquet",), is_parquet),
        Format("tsv", read_text, write_text, (".txt", ".tsv"), is_tab_separated),
        Format("wikipeople", read_wikipeople, None, (".json",), is_wikipeople),
        Format("jsonl", read_jsonl, write_jsonl, (".jsonl", ".ndjson", ".json"), is_jsonl),
        Format("hyper-csv", read_hyper_csv, write_hyper_csv, (".csv",), is_hyper_csv),
        Format("csv", read_csv, write_csv, (".csv",), is_csv),
    )
}
_ALL_ENDINGS = (end for name in get_args(ReadFormat) for end in FORMATS[name].endings)
ENDINGS = tuple(dict.fromkeys(_ALL_ENDINGS))  # each once, in the order in which messages list them


def read_named(
    path: Path, format_name: ReadFormat | None = None, options: ReadOptions | None = None
) -> NamedFacts:
    """Read one file of facts; its format is recognised from the content unless it is named."""
    options = options or ReadOptions()
    if not options.relation:
        options = replace(options, relation=stem(path))

    facts = FORMATS[format_name or detect_format(path)].read(path, options)
    if len(facts) == 0:
        raise FactFileError(path, [("", "expected facts, found only blank lines")])
    return facts


def write_named(
    facts: NamedFacts,
    path: Path,
    format_name: WriteFormat,
    relations: Iterable[Relation] | None = None,
) -> None:
    """Write facts to a file in the order of their rows; what the disk refuses is an ``OSError``.

    ``relations`` are all those of the data set that the file is part of; by default, its own.
    """
    write = FORMATS[format_name].write
    assert write is not None, f"{format_name} is not written"
    try:
        write(facts, path, relations_of([facts]) if relations is None else relations)
    except pl.exceptions.PolarsError as error:  # polars wraps what the disk says
        first_line = str(error).split("\n")[0]
        raise OSError(first_line.rsplit("error: ", 1)[-1]) from None


def detect_format(path: Path) -> ReadFormat:
    """Recognise the format of a file from its first lines, with its ending as a hint."""
    head = Head(path, ending(path), read_head(path))
    matching = (name for name, form in FORMATS.items() if form.sniff(head))
    return next(matching, "tsv")


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

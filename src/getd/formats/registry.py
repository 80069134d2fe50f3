"""The file formats of facts: one table, and the way to its readers and writers.

A format is one file here, with its :class:`Format`, and one line in ``getd.choices``.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import polars as pl

from getd import choices
from getd.choices import ReadFormat, WriteFormat
from getd.errors import FactFileError
from getd.facts.named import NamedFacts
from getd.facts.relation import Relation
from getd.formats.format import COMPRESSED, Format, Head, ReadOptions, ending
from getd.io.lines import read_head

FORMATS: dict[str, Format] = choices.load(choices.FORMATS)
_ALL_ENDINGS = (end for form in FORMATS.values() for end in form.endings)
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
    facts: NamedFacts, path: Path, format_name: WriteFormat, relations: Iterable[Relation]
) -> None:
    """Write facts to a file in the order of their rows; what the disk refuses is an ``OSError``."""
    write = FORMATS[format_name].write
    assert write is not None, f"{format_name} is not written"
    try:
        write(facts, path, relations)
    except pl.exceptions.PolarsError as error:  # polars wraps what the disk says
        first_line = str(error).split("\n")[0]
        raise OSError(first_line.rsplit("error: ", 1)[-1]) from None


def detect_format(path: Path) -> ReadFormat:
    """Recognise the format of a file from its first lines, with its ending as a hint."""
    head = Head(path, ending(path), read_head(path))
    by_priority = sorted(FORMATS.items(), key=lambda item: -item[1].priority)
    matching = (name for name, form in by_priority if form.sniff(head))
    name = next(matching, "tsv")
    if name == "tsv" and head.looks_like_rdf:
        expected = "lines of relation, subject and object, separated by tabs"
        raise FactFileError(path, f"RDF is not read yet; convert it to {expected}")
    return name


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

"""What a file format is: how its files are read, written and recognised."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from getd.facts.named import NamedFacts
from getd.facts.relation import Relation
from getd.facts.role_order import RoleOrder
from getd.io.lines import read_pieces

RDF_LINES = 5  # that are looked at
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class ReadOptions:
    """What readers take besides a path; each uses what concerns its format."""

    escaped: bool = False  # plain text: \t and the like are the characters they stand for
    relation: str = ""  # of a table that has no relation column; empty: the file's name
    role_order: RoleOrder = field(default_factory=RoleOrder)  # shared by the files of a data set


@dataclass(frozen=True)
class Head:
    """The beginning of a file, from which its format is recognised."""

    path: Path
    ending: str
    data: bytes  # at most MAX_LINE, decompressed

    @cached_property
    def lines(self) -> list[str]:
        """The lines that are not blank; a binary file is refused."""
        lines_end = self.data.rfind(b"\n") + 1
        try:
            self.data[:lines_end].decode("utf-8")
            is_text = len(self.data) > 0 and b"\0" not in self.data
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            next(read_pieces(self.path))  # raises, and names the line

        text = self.data.decode("utf-8", errors="replace")
        return [line for line in text.split("\n") if line.strip()]

    @property
    def first(self) -> str:
        """The first line."""
        return self.lines[0].rstrip("\r") if self.lines else ""

    @property
    def looks_like_json(self) -> bool:
        """Whether an object or a list begins, in a file that is not called CSV or TSV."""
        begins = self.first.lstrip().startswith(("{", "["))
        return begins and self.ending not in (".csv", ".tsv")

    @property
    def looks_like_rdf(self) -> bool:
        """Whether the first lines are N-Triples, ``<subject> … <object> .``, or begin Turtle."""
        if self.first.lower().startswith(("@prefix ", "@base ")):
            return True
        first = [line.strip() for line in self.lines[:RDF_LINES]]
        statements = [line for line in first if not line.startswith("#")]
        is_triple = [
            line.startswith(("<", "_:")) and line.endswith((" .", "\t.", ">."))
            for line in statements
        ]
        return bool(is_triple) and all(is_triple)

    @cached_property
    def json_value(self) -> dict[str, Any] | list[Any] | None:
        """The object or list that the first line is, if it is one."""
        try:
            return json.loads(self.first) if self.looks_like_json else None
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Format:
    """A file format; ``write`` takes all relations of a data set, as one file may lack some."""

    name: str
    read: Callable[[Path, ReadOptions], NamedFacts]
    write: Callable[[NamedFacts, Path, Iterable[Relation]], None] | None
    endings: tuple[str, ...]
    sniff: Callable[[Head], bool]  # whether a file may be in this format
    priority: int = 0  # where several may be: the highest is taken, or else the first in the table

    @property
    def suffix(self) -> str:
        """The ending of the files that we write."""
        own = f".{self.name}"
        return own if own in self.endings else self.endings[0]


def ending(path: Path) -> str:
    """The ending that tells the format, without that of a compression.

    >>> ending(Path("facts/train.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""

"""Hyper-relational CSV: rows ``subject,relation,object,qualifier,value,…`` without a header.

``(subject, relation, object, {(qualifier, value), …})`` is read as the n-ary fact
``relation(subject, object, value, …)`` with the roles ``subject, object, qualifier, …``. Qualifiers
are a set: they are put into one canonical order, by name, then value.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from getd.errors import WriteError
from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Relation, Roles
from getd.facts.role_order import RoleOrder
from getd.formats.csv_rows import (
    allow_long_fields,
    looks_like_csv,
    read_csv_rows,
    report,
    report_empty,
)
from getd.formats.format import Format, Head, ReadOptions
from getd.formats.line_writer import BlockTexts, write_facts
from getd.io.lines import MAX_LINE
from getd.io.problems import Problems

MAIN_ROLES: Roles = ("subject", "object")


class HyperFact(NamedTuple):
    """A main triple and its qualifiers."""

    subject: str
    relation: str
    object: str
    qualifiers: Sequence[tuple[str, str]]  # name, value


class HyperBuilder(NamedFactsBuilder):
    """Gathers hyper-relational facts as n-ary ones."""

    def __init__(self, role_order: RoleOrder) -> None:
        super().__init__()
        self._role_order = role_order

    def add_fact(self, line: int, fact: HyperFact) -> None:
        """Add one fact, and note which other order its qualifiers had."""
        order = sorted(range(len(fact.qualifiers)), key=fact.qualifiers.__getitem__)
        qualifiers = [fact.qualifiers[i] for i in order]
        roles = (*MAIN_ROLES, *(name for name, _ in qualifiers))
        entities = [fact.subject, fact.object, *(value for _, value in qualifiers)]
        arrangement = self._role_order.arrangement(order)
        self.add_row(line, fact.relation, roles, entities, arrangement)


def is_hyper_csv(head: Head) -> bool:
    """Whether rows have an odd length, no header, and the relation of the first comes again."""
    if not looks_like_csv(head):
        return False
    allow_long_fields()
    try:
        is_cut = len(head.data) == MAX_LINE  # then the last line may be, too
        rows = list(csv.reader(head.lines[:-1] if is_cut else head.lines))
    except csv.Error:
        return False
    if not rows or "relation" in [name.strip().lower() for name in rows[0]]:
        return False

    has_pairs = all(len(row) % 2 == 1 and len(row) >= 3 for row in rows)
    return has_pairs and any(row[1] == rows[0][1] for row in rows[1:])


def read_hyper_csv(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts with any number of qualifiers."""
    builder = HyperBuilder(options.role_order)
    problems = Problems(path)
    for rows in read_csv_rows(path, ",", problems):
        width = rows.width - 1
        if width < 3 or width % 2 == 0:
            expected = "subject,relation,object and pairs of qualifier,value"
            fields = "field" if width == 1 else "fields"
            report(rows, problems, f"expected {expected}, found {width} {fields}")
        elif report_empty(rows, problems):
            continue
        elif width == 3:  # without qualifiers
            line, subject, relation, other = rows
            builder.add(MAIN_ROLES, pl.DataFrame([line, relation, subject, other]))
        else:
            for line, subject, relation, other, *rest in rows.iter_rows():
                qualifiers = list(zip(rest[::2], rest[1::2], strict=True))
                builder.add_fact(line, HyperFact(subject, relation, other, qualifiers))
    problems.check()
    return builder.build()


def write_hyper_csv(facts: NamedFacts, path: Path, relations: Iterable[Relation]) -> None:
    """Write facts; the first two roles of a relation are its main triple, whatever their names."""
    # Rows do not name these two roles, so relations must not differ in them alone.
    seen: dict[tuple[str, Roles], Relation] = {}
    for relation in sorted(relations):
        qualifiers = tuple(sorted(relation.roles[2:]))
        other = seen.setdefault((relation.name, qualifiers), relation)
        if other != relation:
            first = ", ".join(other.roles[:2])
            second = ", ".join(relation.roles[:2])
            raise WriteError(
                f"hyper-csv cannot tell apart {relation.name!r} of {first} and of {second}; "
                "choose another form"
            )
    write_facts(path, facts, _to_lines)


def _to_lines(texts: BlockTexts) -> pl.Series:
    if texts.block.entities.shape[1] < 2:
        raise WriteError("hyper-csv needs a subject and an object, found facts with one entity")

    relation = texts.add_relations(_quoted)
    subject, other, *values = texts.add_entities(_quoted).T
    role = texts.add_by_roles(list, _quoted)  # the first of each fact
    columns = [subject, relation, other]
    for position, value in enumerate(values, start=2):
        columns += [role + position, value]
    return texts.join(columns, ",")


def _quoted(texts: pl.Series) -> pl.Series:
    doubled = texts.str.replace_all('"', '""', literal=True)
    quoted = '"' + doubled + '"'
    needs_quotes = texts.str.contains(r'[",\r\n]')
    return quoted.zip_with(needs_quotes, texts)


HYPER_CSV = Format(
    "hyper-csv", read_hyper_csv, write_hyper_csv, (".csv",), is_hyper_csv, priority=1
)

"""Hyper-relational facts: a main triple and qualifiers, read as n-ary facts and written back.

``(subject, relation, object, {(qualifier, value), …})`` becomes ``relation(subject, object, value, …)`` with the roles
``subject, object, qualifier, …``. Qualifiers are a set: they are put into one canonical order, by name, then value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Roles
from getd.formats.plain_text import read_csv_rows, report_empty, with_lines
from getd.io.problems import Problems

MAIN_ROLES: Roles = ("subject", "object")
Qualifiers = Sequence[tuple[str, str]]


class HyperBuilder:
    """Gathers hyper-relational facts as n-ary ones."""

    def __init__(self) -> None:
        self._builder = NamedFactsBuilder()
        self._arrangements: dict[tuple[int, ...], int] = {}

    def add_triples(self, triples: pl.DataFrame) -> None:
        """Many facts without qualifiers: columns line, subject, relation, object."""
        line, subject, relation, other = triples.get_columns()
        self._builder.add(MAIN_ROLES, pl.DataFrame([line, relation, subject, other]))

    def add_row(self, line: int, main: tuple[str, str, str], qualifiers: Qualifiers) -> None:
        """One fact: ``main`` is subject, relation, object."""
        subject, relation, other = main
        order = tuple(sorted(range(len(qualifiers)), key=qualifiers.__getitem__))
        stood_so = order == tuple(range(len(order)))
        arrangement = (
            0 if stood_so else self._arrangements.setdefault(order, len(self._arrangements) + 1)
        )
        roles = (*MAIN_ROLES, *(qualifiers[i][0] for i in order))
        self._builder.add_row(
            roles,
            (line, relation, [subject, other, *(qualifiers[i][1] for i in order)], arrangement),
        )

    def build(self) -> NamedFacts:
        return self._builder.build()


def read_hyper_csv(path: Path) -> NamedFacts:
    """Facts from rows ``subject,relation,object,qualifier,value,…`` without a header, any number of pairs."""
    builder, problems = HyperBuilder(), Problems(path)
    for lines, fields in read_csv_rows(path, ",", problems):
        if fields.width < 3 or fields.width % 2 == 0:
            expected = "subject,relation,object and pairs of qualifier,value"
            for line in lines.tolist():
                problems.add(
                    line,
                    f"expected {expected}, found {fields.width} field{'s' * (fields.width > 1)}",
                )
            continue
        if report_empty(fields, lines, problems):
            continue
        if fields.width == 3:
            builder.add_triples(with_lines(lines, fields))
        else:
            for line, (subject, relation, other, *rest) in zip(
                lines.tolist(), fields.iter_rows(), strict=True
            ):
                builder.add_row(
                    line, (subject, relation, other), list(zip(rest[::2], rest[1::2], strict=True))
                )
    problems.check()
    return builder.build()


def to_hyper(
    relation: str, roles: Roles, entities: Iterable[str]
) -> tuple[str, str, str, list[tuple[str, str]]]:
    """The way back: ``(subject, relation, object, qualifiers)`` of an n-ary fact with two entities or more.

    >>> to_hyper("award", ("subject", "object", "season"), ["Jordan", "MVP", "1991-92"])
    ('Jordan', 'award', 'MVP', [('season', '1991-92')])
    """
    subject, other, *values = entities
    return subject, relation, other, list(zip(roles[2:], values, strict=True))

"""Plain text: one fact a line, ``relation entity …``."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from getd.errors import WriteError
from getd.facts.encode import block_relations
from getd.facts.escape import escape, escape_names, unescape_names, wrong_escape
from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Relation, default_roles, relation_labels
from getd.formats.csv_rows import Rows, line_numbers, report_empty, report_returns, split_fields
from getd.formats.format import Format, Head, ReadOptions
from getd.formats.line_writer import BlockTexts, write_facts
from getd.io.lines import read_head, read_pieces
from getd.io.problems import Problems

HEADER_WORDS = {"relation", "predicate"}  # that only a header has
MIN_FACTS = 10  # of which one that shares no name with the others is odd
COMPARED_LINES = 20_000  # the first ones, in which relations are compared with entities
MIN_RELATIONS = 5  # names, of which a share says something
MIN_RATIO = 4  # of the names of the first column to those of the second, which may be relations
MIN_SHARED = 0.2  # of them that are entities too; of data with the relation first, none are


def is_tab_separated(head: Head) -> bool:
    """Whether the first line has a tab, in a file that is called text."""
    return "\t" in head.first and head.ending in (".tsv", ".txt")


def read_text(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts: a line that holds a tab is split at tabs, any other at runs of spaces.

    Blank lines are left out, and so is a carriage return before the line end. With
    ``options.escaped``, names are read as :func:`write_text` writes them (``\\t`` is a tab);
    without, every character stands for itself.
    """
    builder = NamedFactsBuilder()
    problems = Problems(path)
    for rows in _read_rows(path, None if options.escaped else problems):
        if rows.width == 2:  # the line and one field
            for line, name in rows.iter_rows():
                message = f"expected a relation and at least one entity, found only {name!r}"
                problems.add(line, message)
        elif not report_empty(rows, problems):
            rows = _unescape(rows, problems) if options.escaped else rows
            builder.add(default_roles(rows.width - 2), rows)
    problems.check()

    facts = builder.build()
    has_tab = b"\t" in read_head(path).split(b"\n", 1)[0]
    notices = tuple(f"{path}: {notice}" for notice in _notices(facts, has_tab))
    return replace(facts, notices=notices)


def _notices(facts: NamedFacts, has_tab: bool) -> Iterator[str]:
    """Say what looks like a header, or like another order of the columns."""
    if not len(facts):
        return
    has_word = HEADER_WORDS & {name.lower() for name in facts.first_names()}
    if has_word or _is_first_apart(facts):
        notice = "the first line looks like a header; plain text has none: read as a fact"
        yield f"{notice} (--format csv reads a table with a header)" if has_tab else notice

    relations: set[str] = set()
    entities: set[str] = set()
    second: set[str] = set()  # the names of the second column
    for block in facts.blocks.values():
        is_compared = block.row <= COMPARED_LINES
        relations.update(facts.relations.gather(np.unique(block.relation[is_compared])))
        entities.update(facts.entities.gather(np.unique(block.entities[is_compared])))
        if block.entities.shape[1] > 1:
            second.update(facts.entities.gather(np.unique(block.entities[is_compared, 0])))

    n_shared = len(relations & entities)
    if len(relations) < MIN_RELATIONS:
        return
    if n_shared >= MIN_SHARED * len(relations):
        share = f"{n_shared:,} of {len(relations):,} relation names are entities too"
        yield f"the first column looks like an entity: {share}; getd reads the relation first"
    elif second and len(relations) >= MIN_RATIO * max(len(second), MIN_RELATIONS):
        names = f"it has {len(relations):,} names, the second one only {len(second):,}"
        yield f"the first column looks like an entity: {names}; getd reads the relation first"


def _is_first_apart(facts: NamedFacts) -> bool:
    """Whether the first fact, and no other, shares no name with the rest, as a header does."""
    if len(facts) < MIN_FACTS:
        return False
    blocks = facts.blocks.values()
    relation_counts = np.bincount(np.concatenate([block.relation for block in blocks]))
    entity_counts = np.bincount(np.concatenate([block.entities.ravel() for block in blocks]))

    rows = []  # of the facts that share no name
    for block in blocks:
        is_apart = relation_counts[block.relation] == 1
        is_apart &= (entity_counts[block.entities] == 1).all(axis=1)
        rows += block.row[is_apart].tolist()
    return rows == [min(block.row[0] for block in blocks)]


def _read_rows(path: Path, problems: Problems | None) -> Iterator[Rows]:
    """Read the fields of all lines; with ``problems``, a carriage return in a line is one."""
    for piece in read_pieces(path):
        if problems is not None:
            report_returns(piece, problems)
        for rows in split_fields(piece.data, line_numbers(piece), "\t"):
            if rows.width > 2:
                yield rows
                continue

            # Lines without a tab: no spaces at their ends, single ones within.
            data = "".join(f"{line}\n" for line in rows["0"]).encode()
            if b"  " in data or b" \n" in data or b"\n " in data or data.startswith(b" "):
                data = re.sub(rb"^ +| +$", b"", data, flags=re.MULTILINE)
                data = re.sub(rb" +", b" ", data)
            yield from split_fields(data, rows["line"].to_numpy(), " ")


def _unescape(rows: Rows, problems: Problems) -> Rows:
    has_escape = pl.any_horizontal(pl.col(pl.String).str.contains("\\", literal=True))
    for line, *names in rows.filter(has_escape).iter_rows():
        if wrong := next(filter(None, map(wrong_escape, names)), None):
            problems.add(line, f"expected the escapes \\\\ \\t \\n \\r, found {wrong}")

    line, *fields = rows
    return pl.DataFrame([line, *map(unescape_names, fields)])


def write_text(facts: NamedFacts, path: Path, relations: Iterable[Relation]) -> None:
    """Write facts with tabs between names, and tabs and line ends in names escaped."""
    name_of = _names_without_roles(relations)

    def to_lines(texts: BlockTexts) -> pl.Series:
        own, which = block_relations(facts, texts.block)
        relation = texts.add([escape(name_of[relation]) for relation in own]) + which
        entities = texts.add_entities(escape_names)
        return texts.join([relation, *entities.T], "\t")

    write_facts(path, facts, to_lines)


def _names_without_roles(relations: Iterable[Relation]) -> dict[Relation, str]:
    """What plain text, which cannot hold roles, calls each relation.

    Relations without role names differ in arity, so their names will do; others go by their label.
    """
    names = {
        relation: label if relation.has_named_roles else relation.name
        for relation, label in relation_labels(relations).items()
    }

    uses = Counter((name, relation.arity) for relation, name in names.items())
    for (name, arity), number in uses.items():
        if number > 1:
            raise WriteError(
                f"tsv cannot tell apart {number} relations called {name!r} with {arity} entities; "
                "choose another form"
            )
    return names


TSV = Format("tsv", read_text, write_text, (".txt", ".tsv"), is_tab_separated, priority=4)

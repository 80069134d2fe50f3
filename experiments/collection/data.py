"""What a kind makes: a table, plain text or JSON lines, as people keep their data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

Fact = tuple[str, ...]  # relation, entity, …


@dataclass(frozen=True)
class Table:
    """A CSV file: the columns are roles, and there may be a column ``relation``."""

    columns: dict[str, list[str]]

    def write(self, folder: Path, name: str) -> Path:
        """Write the file, and return its path."""
        path = folder / f"{name}.csv"
        pl.DataFrame(self.columns).write_csv(path)
        return path


@dataclass(frozen=True)
class PlainText:
    """A line per fact: the relation and the entities, with tabs in between."""

    facts: list[Fact]

    def write(self, folder: Path, name: str) -> Path:
        """Write the file, and return its path."""
        path = folder / f"{name}.tsv"
        path.write_text("".join("\t".join(fact) + "\n" for fact in self.facts), encoding="utf-8")
        return path


@dataclass(frozen=True)
class JsonLines:
    """A JSON object per fact: a role may be missing, or have several entities."""

    records: list[dict[str, Any]]

    def write(self, folder: Path, name: str) -> Path:
        """Write the file, and return its path."""
        path = folder / f"{name}.jsonl"
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in self.records]
        path.write_text("".join(lines), encoding="utf-8")
        return path


Data = Table | PlainText | JsonLines


def table(**columns: Iterable[str]) -> Table:
    """Make a table from its columns."""
    return Table({role: list(map(str, names)) for role, names in columns.items()})


def facts(relation: str, *columns: Iterable[str]) -> list[Fact]:
    """Make the facts of a relation from the entities of each position."""
    return [(relation, *map(str, names)) for names in zip(*columns, strict=True)]


def record(relation: str, **entities: str | list[str]) -> dict[str, Any]:
    """Make a fact of JSON lines."""
    return {"relation": relation, "entities": entities}

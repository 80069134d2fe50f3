"""The table of results that is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutations.trial import Result

RESULTS = Path(__file__).parent / "RESULTS.md"
INTRODUCTION = """# Mutations

Wrong lines of code, and the test that notices each: `python -m tests.mutations` writes this page.
A test that is named here is tried first the next time.
"""
VERDICTS = {
    "lost": "**lost**: it does not fit the code any more; write it anew",
    "survived": "**survived**",
}
HEADER = ["| id | where | change | result |", "|---|---|---|---|"]


def section(title: str, results: Sequence[Result]) -> str:
    """A part of the page."""
    return _section(title, [_row(result) for result in results])


def write(parts: Sequence[str], path: Path = RESULTS) -> None:
    """The page with these parts in place of those with the same titles, or at its end."""
    by_title = {_title(part): part for part in [*_read(path), *parts]}
    _write(by_title.values(), path)


def write_rows(results: Sequence[Result], path: Path = RESULTS) -> None:
    """The page with the rows of some mutations written anew, wherever it has them."""
    new = {result.mutation.id: _row(result) for result in results}
    parts = []
    for part in _read(path):
        rows = [new.get(_id(row), row) for row in _rows(part)]
        parts.append(_section(_title(part), rows))
    _write(parts, path)


def killers(path: Path = RESULTS) -> dict[str, str]:
    """The test that noticed each mutation the last time."""
    rows = [row for part in _read(path) for row in _rows(part)]
    tests = {_id(row): re.search(r"\| killed by `(.+?)` \|$", row) for row in rows}
    return {name: match[1].replace("\\|", "|") for name, match in tests.items() if match}


def _row(result: Result) -> str:
    mutation = result.mutation
    verdict = VERDICTS.get(result.verdict, f"{result.verdict}: {result.about}")
    if result.verdict == "killed":
        verdict = f"killed by `{result.about}`"
    cells = [mutation.id, f"`{mutation.where}`" if mutation.where else "", mutation.change, verdict]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _section(title: str, rows: Sequence[str]) -> str:
    verdicts = [re.findall(r"\w+", row.split(" | ")[3])[0] for row in rows]
    counts = Counter(verdicts)
    summary = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    return "\n".join([f"## {title}", "", f"{summary}.", "", *HEADER, *rows, ""])


def _id(row: str) -> str:
    return row.split(" | ")[0].removeprefix("| ")


def _title(part: str) -> str:
    return part.split("\n", 1)[0].removeprefix("## ")


def _rows(part: str) -> list[str]:
    return [line for line in part.splitlines() if line.startswith("| ") and line not in HEADER]


def _read(path: Path) -> list[str]:
    """The parts of a page."""
    if not path.exists():
        return []
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    return [f"## {part}" for part in parts]


def _write(parts: Iterable[str], path: Path) -> None:
    page = [INTRODUCTION, *(part.strip("\n") + "\n" for part in parts)]
    path.write_text("\n".join(page), encoding="utf-8")

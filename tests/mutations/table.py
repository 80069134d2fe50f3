"""The table of results that is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.trial import Result

RESULTS = Path(__file__).parent / "RESULTS.md"
INTRODUCTION = """# Mutations

Wrong lines of code, and the test that notices each: `python -m tests.mutations` writes this page.
A test that is named here is tried first the next time.
"""
VERDICTS = {"lost": "**does not fit the code any more**: write it anew", "survived": "**survived**"}


def section(title: str, results: Sequence[Result]) -> str:
    """A part of the page."""
    counts = Counter(result.verdict for result in results)
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    rows = [_row(result) for result in results]
    return "\n".join(
        [
            f"## {title}",
            "",
            f"{told}.",
            "",
            "| id | where | change | result |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def write(parts: dict[str, str], path: Path = RESULTS) -> None:
    """The page with these parts, by the first word of their titles; others stay as they are."""
    kept = (
        {part.split()[0].strip(":"): f"## {part}" for part in path.read_text().split("\n## ")[1:]}
        if path.exists()
        else {}
    )
    kept |= parts
    order = sorted(kept, key=["Listed", "Drawn"].index)
    path.write_text(
        "\n".join([INTRODUCTION, *(kept[name].strip("\n") + "\n" for name in order)]),
        encoding="utf-8",
    )


def killers(path: Path = RESULTS) -> dict[str, str]:
    """The test that noticed each mutation the last time."""
    if not path.exists():
        return {}
    rows = re.findall(
        r"^\| (\S+) \|.*\| killed by `(.+?)` \|$", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {name: test.replace("\\|", "|") for name, test in rows}


def _row(result: Result) -> str:
    mutation = result.mutation
    verdict = VERDICTS.get(result.verdict, f"{result.verdict}: {result.about}")
    if result.verdict == "killed":
        verdict = f"killed by `{result.about}`"
    cells = [mutation.id, f"`{mutation.where}`" if mutation.where else "", mutation.change, verdict]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

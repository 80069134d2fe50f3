"""Results as files, one for each row and seed, and the table of ``README.md`` that is made from them."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.machine import machine_facts
from getd.facts.files import atomic_path
from getd.runs.folder import RunFolder

HERE = Path(__file__).parent
ROWS = HERE.parent / "src" / "getd" / "experiments" / "rows"
RESULTS, PAGE = HERE / "results", HERE / "README.md"
BEGIN, END = "<!-- results: written by python -m experiments -->", "<!-- end of results -->"


def result_path(row: str, seed: int) -> Path:
    """Where the result of a row and seed is kept."""
    return RESULTS / f"{row.replace('/', '-')}-seed-{seed}.json"


def record(run: RunFolder, row: str) -> Path:
    """Write a finished run down: settings, seed, command, machine, history and the report on test."""
    report, history, config = run.read_json("report.json"), run.read_history(), run.read_config()
    seed = config["training"]["seed"]
    found = {
        "row": row,
        "command": f"getd train --config src/getd/experiments/rows/{row}.toml --seed {seed}",
        "config": config,
        "seed": seed,
        "epochs": len(history),
        "training_seconds": round(sum(line["seconds"] for line in history), 1),
        "best_epoch": report.get("best_epoch"),
        "valid_mrr": report.get("valid_mrr"),
        "protocol": report["protocol"],
        "metrics": report["metrics"],
        "floors": report["floors"],
        "by": {key: report["by"][key] for key in ("arity", "position", "seen")},
        "environment": run.read_json("environment.json"),
        "machine": machine_facts(),
    }
    path = result_path(row, seed)
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def write_table() -> None:
    """Put the table of all results between the two markers of the page."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    lines = [_line(row, list(group)) for row, group in groupby(results, key=lambda result: result["row"])]
    head = "| row | seeds | test MRR, each | mean | deviation | published | validation MRR | minutes |\n"
    table = head + "|---|---|---|---|---|---|---|---|\n" + "\n".join(lines)
    between_markers(BEGIN, table, END)


def between_markers(begin: str, table: str, end: str) -> None:
    """Put a table between two markers of the page, in place of what is there."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    with atomic_path(PAGE) as temporary:
        temporary.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")


def _line(row: str, results: list[dict[str, Any]]) -> str:
    mrr = [result["metrics"]["mrr"] for result in results]
    published = results[0]["config"].get("published", {}).get("mrr")
    cells = [
        f"`{row}`",
        ", ".join(str(result["seed"]) for result in results),
        ", ".join(f"{value:.4f}" for value in mrr),
        f"**{mean(mrr):.4f}**",
        f"{stdev(mrr):.4f}" if len(mrr) > 1 else "",
        f"{published:.3f}" if published else "",
        ", ".join(f"{result['valid_mrr']:.4f}" for result in results),
        ", ".join(f"{result['training_seconds'] / 60:.0f}" for result in results),
    ]
    return f"| {' | '.join(cells)} |"

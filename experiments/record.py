"""Write a finished run down as a committed result.

getd train --config src/getd/experiments/rows/best/getd-jf17k-4.toml --out runs/jf17k-4
python -m experiments.record runs/jf17k-4 best/getd-jf17k-4
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.machine import machine_facts
from getd.runs.folder import RunFolder

RESULTS = Path(__file__).parent / "results"


def record(run: RunFolder, row: str) -> Path:
    """The result of a run as JSON: settings, seed, command, machine, history and the report on test."""
    report, history = run.read_json("report.json"), run.read_history()
    found = {
        "row": row,
        "command": f"getd train --config src/getd/experiments/rows/{row}.toml",
        "config": run.read_config(),
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
    path = RESULTS / f"{row.replace('/', '-')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(record(RunFolder(Path(sys.argv[1])), sys.argv[2]))

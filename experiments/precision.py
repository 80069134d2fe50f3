"""Compare trainings in bf16 with trainings in fp32, by MRR on validation and by time.

    python -m experiments.precision [--sets JF17K-4 …] [--seeds 3]

The settings are those of the best rows. Trainings that are in ``precision.json`` already are
skipped, so an interrupted round is resumed. Test is not read. Times are comparable only if nothing
else was running.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from getd.datasets.load import load
from getd.experiments.rows import find_row
from getd.io.atomic import atomic_path
from getd.io.environment import commit_of, machine_facts
from getd.training.start import train

RESULTS = Path(__file__).parent / "precision.json"
PAGE = RESULTS.with_suffix(".md")
SETS = ("JF17K-4", "WikiPeople-4")
PRECISIONS = ("fp32", "bf16")
HEAD = """# Precision

Made by `python -m experiments.precision`: the rows `best/getd-…` in fp32 and in bf16
([what is rounded](../docs/performance.md)). Best MRR on validation, mean and deviation over seeds;
test is not read. Seconds are the median of all epochs of a training, without its validation.
"""


def main() -> None:
    """Run the trainings that are missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.precision", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()

    for data in options.sets:
        for seed in range(options.seeds):
            for precision in PRECISIONS:
                measure(data, precision, seed)
    write_page(read().values())


def measure(data: str, precision: str, seed: int) -> None:
    """Measure one training, if it is not measured yet."""
    name = f"{data}, {precision}, seed {seed}"
    if name in read():
        return

    row = find_row(f"best/getd-{data.lower()}")
    given = {"training.precision": precision, "training.seed": seed}
    config = row.points[0].config.with_values(given)
    with tempfile.TemporaryDirectory() as folder:
        run = train(load(data), config, Path(folder) / "run", ask_test=False)
        history = run.folder.read_history()

    seconds = sorted(line.seconds for line in history)
    result = {
        "data": data,
        "precision": precision,
        "seed": seed,
        "best": max(line.valid_mrr for line in history if line.valid_mrr is not None),
        "epochs": len(history),
        "epoch_seconds": seconds[len(seconds) // 2],
        "commit": commit_of(),
        "machine": machine_facts("getd", "torch"),
    }
    print(name, {key: result[key] for key in ("best", "epochs", "epoch_seconds")}, flush=True)
    with atomic_path(RESULTS) as temporary:
        temporary.write_text(json.dumps(read() | {name: result}, indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """Read the results so far, by name."""
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))) if RESULTS.exists() else {}


def write_page(results: Iterable[dict[str, Any]]) -> None:
    """Write a line for each set and precision."""
    lines = ["| set | precision | MRR of each seed | mean | deviation | seconds of an epoch |"]
    lines.append("|---|---|---|---|---|---|")
    kept = list(results)
    for data in SETS:
        for precision in PRECISIONS:
            group = [r for r in kept if (r["data"], r["precision"]) == (data, precision)]
            if group:
                lines.append(line_of(data, precision, group))
    with atomic_path(PAGE) as temporary:
        temporary.write_text(HEAD + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


def line_of(data: str, precision: str, group: list[dict[str, Any]]) -> str:
    """Make a line of the table."""
    mrrs = [result["best"] for result in sorted(group, key=lambda result: result["seed"])]
    shown = ", ".join(f"{mrr:.4f}" for mrr in mrrs)
    deviation = f"{stdev(mrrs):.4f}" if len(mrrs) > 1 else "–"
    seconds = min(result["epoch_seconds"] for result in group)
    cells = [data, precision, shown, f"{mean(mrrs):.4f}", deviation, f"{seconds:.2f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()

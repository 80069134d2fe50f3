"""Train every model for one epoch on every data set it supports, and evaluate a sample of test.

    python -m experiments.every_model

The models have their default settings. It shows that each pair works, and what an epoch costs; one
epoch says nothing about how good a model is. Pairs that are in ``every_model.json`` already are
skipped, so an interrupted round is resumed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from getd.datasets.load import load
from getd.io.atomic import atomic_path
from getd.io.environment import machine_facts
from getd.models.registry import MODELS
from getd.runs.config import Config
from getd.runs.folder import RunFolder

RESULTS = Path(__file__).parent / "every_model.json"
PAGE = RESULTS.with_suffix(".md")
SETS = ("demo", "WikiPeople-3", "WikiPeople-4", "JF17K-3", "JF17K-4", "JF17K", "WN18", "FB15k")
SETTINGS = (
    "training.epochs=1",
    "training.validation_sample=50",
    "training.test_sample=50",
    "training.threads=1",
)
HEAD = """# Every model on every data set

Made by `python -m experiments.every_model`: each pair is trained for an epoch as a user would do,
then evaluated on a sample of test, to show that it works and what it costs; one epoch says nothing
about how good a model is. Seconds of the epoch with the default settings of each model, on one
thread of a two-core machine with other work next to it (much of it next to NaLP on FB15k); `–`:
the model is for two entities. RAE, m-TransH, NaLP and TransE have the regime `sampled` by default,
the others `1vsall`.
"""


def main() -> None:
    """Train the pairs that are missing, then write the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.every_model", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    options = parser.parse_args()

    for data in options.sets:
        is_binary = tuple(load(data).arities) == (2,)
        for model in options.models:
            name = f"{model} on {data}"
            fits = is_binary or not MODELS[model].model.binary_only
            if fits and name not in read():
                write(name, one_epoch(data, model))
    write_table()


def one_epoch(data: str, model: str) -> dict[str, Any]:
    """Train a pair as a user would do it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        command = [sys.executable, "-m", "getd", "train", data, "--model", model]
        command += ["--out", str(path), "--quiet"]
        for setting in SETTINGS:
            command += ["--set", setting]
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"{model} on {data}: the training did not finish")

        run = RunFolder(path)
        epoch = json.loads((path / "history.jsonl").read_text(encoding="utf-8").splitlines()[0])
        metrics = run.read_report().metrics
    return {
        "regime": Config.parse({}, model).training.regime,
        "seconds": round(epoch["seconds"], 1),
        "facts": epoch["facts"],
        "loss": epoch["loss"],
        "mrr": metrics.mrr,
        "questions": metrics.questions,
    }


def read() -> dict[str, Any]:
    """Read the results so far, by pair."""
    if not RESULTS.exists():
        return {}
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))["found"])


def write(name: str, result: dict[str, Any]) -> None:
    """Add the result of a pair."""
    print(name, result)
    results = read() | {name: result}
    content = {"settings": SETTINGS, "machine": machine_facts(), "found": results}
    with atomic_path(RESULTS) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_table() -> None:
    """Write the seconds of an epoch by model and data set."""
    results = read()
    lines = [f"| model | {' | '.join(SETS)} |", "|---|" + "---|" * len(SETS)]
    for model in MODELS:
        cells = []
        for data in SETS:
            result = results.get(f"{model} on {data}")
            cells.append("–" if result is None else f"{result['seconds']:,.1f}")
        lines.append(f"| `{model}` | {' | '.join(cells)} |")

    with atomic_path(PAGE) as temporary:
        temporary.write_text(HEAD + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Train every model for one epoch on every data set that it serves, with its default settings, and evaluate a sample.

    python -m experiments.every_model

Shows that each pair works, and what an epoch costs; one epoch says nothing about how good a model is. What is in
``every_model.json`` already is left alone, so an interrupted round goes on.
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
from getd.runs.folder import RunFolder

FOUND = Path(__file__).parent / "every_model.json"
SETS = ("demo", "WikiPeople-3", "WikiPeople-4", "JF17K-3", "JF17K-4", "JF17K", "WN18", "FB15k")
FEW = (
    "training.epochs=1",
    "training.validation_sample=50",
    "training.test_sample=50",
    "training.threads=1",
)
PAGE = FOUND.with_suffix(".md")
HEAD = """# Every model on every data set

Made by `python -m experiments.every_model`: each pair trained for an epoch as a user would, then evaluated on a
sample of test, to show that it works and what it costs; one epoch says nothing about how good a model is.
Seconds of the epoch with the default settings of each model, one thread of a two-core machine, other work beside
it (a good deal beside NaLP on FB15k); `–`: the model is for two entities. RAE, m-TransH, NaLP and TransE begin with
the regime `sampled`, the others with `1vsall`.
"""


def main() -> None:
    """Train what was not trained yet, then make the table anew."""
    parser = argparse.ArgumentParser(prog="python -m experiments.every_model", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    chosen = parser.parse_args()
    for data in chosen.sets:
        binary = tuple(load(data).arities) == (2,)
        for model in chosen.models:
            if (
                binary or not MODELS[model].model.binary_only
            ) and f"{model} on {data}" not in read():
                keep(f"{model} on {data}", one_epoch(data, model))
    write_table()


def one_epoch(data: str, model: str) -> dict[str, Any]:
    """As a user would do it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "getd",
            "train",
            data,
            "--model",
            model,
            "--out",
            f"{folder}/run",
            "--quiet",
        ]
        command += [part for setting in FEW for part in ("--set", setting)]
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"{model} on {data}: the training did not finish")
        run = RunFolder(Path(folder) / "run")
        history, report = run.read_history(), run.read_json("report.json")
    return {
        "regime": run_regime(model),
        "seconds": round(history[0].seconds, 1),
        "facts": history[0].facts,
        "loss": history[0].loss,
        "mrr": report["metrics"]["mrr"],
        "questions": report["metrics"]["questions"],
    }


def run_regime(model: str) -> str:
    """The regime that a model begins with."""
    from getd.runs.config import Config

    return Config.parse({}, model).training.regime


def read() -> dict[str, Any]:
    """What was found so far."""
    found: dict[str, Any] = (
        json.loads(FOUND.read_text(encoding="utf-8"))["found"] if FOUND.exists() else {}
    )
    return found


def keep(name: str, result: dict[str, Any]) -> None:
    """Write one more result down."""
    print(name, result)
    with atomic_path(FOUND) as temporary:
        values = {"settings": FEW, "machine": machine_facts(), "found": read() | {name: result}}
        temporary.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def write_table() -> None:
    """Seconds of an epoch by model and data set."""
    found = read()
    lines = [f"| model | {' | '.join(SETS)} |", "|---|" + "---|" * len(SETS)]
    for model in MODELS:
        seconds = [found.get(f"{model} on {data}", {}).get("seconds") for data in SETS]
        lines.append(
            f"| `{model}` | {' | '.join('–' if s is None else f'{s:,.1f}' for s in seconds)} |"
        )
    with atomic_path(PAGE) as temporary:
        temporary.write_text(HEAD + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

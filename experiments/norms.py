"""Compare norms on validation, and show that trainings with default settings do not fall back.

    python -m experiments.norms [--sets plays-for …] [--seeds 10]

Trainings that are in ``norms.json`` already are skipped, so an interrupted round is resumed. Test
is not read.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.worlds import world
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.io.environment import commit_of, machine_facts
from getd.runs.config import Config
from getd.training.defaults import fill_in
from getd.training.start import train

RESULTS = Path(__file__).parent / "norms.json"
PAGE = RESULTS.with_suffix(".md")
SETS = ("plays-for", "hospital", "three-relations", "demo", "JF17K-4", "WikiPeople-4", "JF17K")
COMPARED_SETS = (*SETS[:4], "JF17K-4")  # all norms; the others have only the default
FORMS: Mapping[str, Mapping[str, Any]] = {
    "batch": {"norm": "batch"},
    "batch, by position": {"norm": "batch", "norms_by_position": True},
    "rms": {"norm": "rms"},
    "none": {"norm": "none"},
}
CHOSEN = "chosen"  # what plain getd train chooses for the data
SETTLED_EPOCHS = 5  # after which the MRR on validation should not fall any more
HEAD = """# Norms

Made by `python -m experiments.norms`. The first two tables are of GETD with preset `paper`,
in forms which differ only in the norm; the last one is of plain `getd train`, which chooses the
model and its settings by the shape of the data.
Batch norms are evaluated with the statistics of the training facts under the evaluated weights
([maths](../docs/maths.md#batch-norm-and-dropout)). Best MRR on validation, and the largest fall
below the best so far after epoch 5; test is not read. `plays-for` is one relation of the demo;
`hospital` and `three-relations` are made by `experiments/worlds.py`. Trainings whose entry in
`norms.json` names no precision were in fp32.
"""


def main() -> None:
    """Run the trainings that are missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.norms", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    seeds_help = "trainings of each set with default settings"
    parser.add_argument("--seeds", type=int, default=10, help=seeds_help)
    options = parser.parse_args()

    for data in options.sets:
        for form in FORMS if data in COMPARED_SETS else ["batch"]:
            measure(data, form, 0)
        for seed in range(1, options.seeds):
            measure(data, "batch", seed)
        for seed in range(options.seeds):
            measure(data, CHOSEN, seed)
    write_page()


def measure(data: str, form: str, seed: int) -> None:
    """Measure one training, if it is not measured yet."""
    name = f"{data}, {form}, seed {seed}"
    if name in read():
        return

    start = time.process_time()
    mrrs, precision = validation_curve(world(data), form, seed)
    falls = [max(mrrs[:epoch]) - mrrs[epoch] for epoch in range(SETTLED_EPOCHS, len(mrrs))]
    result = {
        "data": data,
        "form": form,
        "seed": seed,
        "best": max(mrrs),
        "epochs": len(mrrs),
        "fall": max(falls, default=0.0),
        "precision": precision,
        "cpu_seconds": round(time.process_time() - start),
        "commit": commit_of(),
        "machine": machine_facts("getd", "torch"),
    }

    print(name, {key: result[key] for key in ("best", "epochs", "fall", "cpu_seconds")}, flush=True)
    with atomic_path(RESULTS) as temporary:
        temporary.write_text(json.dumps(read() | {name: result}, indent=1) + "\n", encoding="utf-8")


def validation_curve(kb: KnowledgeBase, form: str, seed: int) -> tuple[list[float], str]:
    """Return the MRR on validation after each epoch, and the precision of the training."""
    training = {"seed": seed, "threads": 1}
    if form == CHOSEN:
        config = fill_in(Config.parse({"training": training}), kb)
    else:
        config = Config.parse({"model": {"name": "getd", **FORMS[form]}, "training": training})

    with tempfile.TemporaryDirectory() as folder:
        run = train(kb, config, Path(folder) / "run", ask_test=False)
        mrrs = [line.valid_mrr for line in run.folder.read_history()]
        precision = run.folder.read_config()["training"]["precision"]
    return [mrr for mrr in mrrs if mrr is not None], precision


def read() -> dict[str, Any]:
    """Read the results so far, by name."""
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))) if RESULTS.exists() else {}


def write_page() -> None:
    """Write a table of the norms, and one of the seeds of the default."""
    results = read()
    lines = ["## Seed 0, by norm", ""]
    lines += [f"| set | {' | '.join(FORMS)} |", "|---|" + "---|" * len(FORMS)]
    for data in SETS:
        cells = [results.get(f"{data}, {form}, seed 0") for form in FORMS]
        if any(cells):
            shown = [f"{cell['best']:.3f} (−{cell['fall']:.3f})" if cell else "–" for cell in cells]
            lines.append(f"| {data} | {' | '.join(shown)} |")

    lines += ["", "## GETD with batch norm, by seed", "", *seed_table("batch")]
    lines += ["", "## Plain `getd train`, by seed", "", *seed_table(CHOSEN)]
    with atomic_path(PAGE) as temporary:
        temporary.write_text(HEAD + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


def seed_table(form: str) -> list[str]:
    """Make the table of all seeds of a form: a line for each set."""
    lines = ["| set | seeds | best MRR, lowest to highest | largest fall |", "|---|---|---|---|"]
    for data in SETS:
        seeds = [each for each in read().values() if (each["data"], each["form"]) == (data, form)]
        if seeds:
            best = sorted(result["best"] for result in seeds)
            fall = max(result["fall"] for result in seeds)
            lines.append(f"| {data} | {len(seeds)} | {best[0]:.3f} – {best[-1]:.3f} | {fall:.3f} |")
    return lines


if __name__ == "__main__":
    main()

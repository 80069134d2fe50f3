"""The tables that need no training of their own: statistics, complexity, cost, claims."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from getd.config import read_toml
from getd.datasets.load import load
from getd.errors import RunError
from getd.evaluation.evaluate import evaluate_baselines, validation_mrr
from getd.experiments.claims import check_claims
from getd.facts.facts import count
from getd.models.registry import MODELS, count_parameters
from getd.runs.config import Config
from getd.training.start import train

Results = Sequence[Mapping[str, Any]]


@cache
def published() -> dict[str, Any]:
    """What the paper says beside its rows."""
    return read_toml(Path(str(files("getd.experiments") / "published.toml")))


def measure_table(name: str, results: Results) -> dict[str, Any]:
    """The table of that name."""
    if name == "statistics":
        return {"rows": {data: _statistics(data) for data in published()["statistics"]}}
    if name == "complexity":
        return {"rows": _complexity("WikiPeople-4")}
    if name == "cost":
        return _cost(results)
    return {"claims": check_claims(results)}


def _statistics(data: str) -> dict[str, Any]:
    kb = load(data)
    found = [
        kb.n_entities,
        kb.n_relations,
        *(count(kb.split(split)) for split in ("train", "valid", "test")),
    ]
    measured = evaluate_baselines(kb)
    return {
        "found": found,
        "published": published()["statistics"][data],
        "baselines": {baseline: metrics.mrr for baseline, metrics in measured.items()},
        "chance": measured["lookup"].mrr_at_chance,
    }


def _complexity(data: str) -> dict[str, Any]:
    """Parameters at the paper's sizes of a 4-ary data set, by formula and counted."""
    kb, claimed = load(data), published()["fully_expressive"]
    counted = count_parameters(kb.n_entities, kb.n_relations, kb.arities)
    return {
        name: {
            "formula": entry.model.parameters_formula,
            "counted": counted[name],
            "fully_expressive": entry.fully_expressive,
            "published": claimed.get(name),
        }
        for name, entry in MODELS.items()
        if not entry.model.binary_only
    }


def _cost(results: Results) -> dict[str, Any]:
    """GETD on WikiPeople-3: an epoch and a ranking of test, each the best of three here and now; a whole training."""
    row = next((found for found in results if found["row"] == "paper/getd-wikipeople-3"), None)
    if row is None:
        raise RunError("cost needs the row paper/getd-wikipeople-3; reproduce that first")
    kb, ranked = load("WikiPeople-3"), []
    known = kb.known()
    with TemporaryDirectory() as folder:
        config = Config.parse(row["config"], epochs=3)
        run = train(kb, config, Path(folder) / "run", ask_test=False)
        epochs = [line.seconds for line in run.folder.read_history()]
        for _ in range(3):
            start = time.perf_counter()
            validation_mrr(run.model.bare, kb.split("test"), known)
            ranked.append(time.perf_counter() - start)
    return {
        "found": {
            "epoch_seconds": round(min(epochs), 2),
            "total_seconds": row["seconds"],
            "inference_seconds": round(min(ranked), 2),
        },
        "config": row["config"],
        "epochs": row["epochs"],
        "published": published()["cost"],
    }

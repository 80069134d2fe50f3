"""Results as files: one for each measurement, with all that is needed to trust it and to make it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from getd.config import override
from getd.evaluation.report import Evaluation
from getd.experiments.rows import Point
from getd.io.atomic import atomic_path
from getd.io.environment import VERSIONS, commit_of, machine_facts
from getd.runs.opened import OpenedRun

GROUPS = ("arity", "position", "seen")


def result_path(into: Path, point: Point) -> Path:
    """Where a measurement is kept."""
    return into / "results" / f"{point.name}.json"


def write_result(into: Path, point: Point, found: Mapping[str, Any]) -> Path:
    """Keep a measurement, with the machine, the versions, and the commit where the package runs from a checkout."""
    machine, commit = machine_facts(*VERSIONS), commit_of()
    versions = machine.pop("versions")
    if commit is not None:
        versions["getd"] += f"+{commit}"
    about = {"versions": versions, "commit": commit, "machine": machine}
    result = {"row": point.row, "seed": point.seed, **_place(point), **found, **about}
    path = result_path(into, point)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_text(
            json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return path


def read_results(into: Path) -> list[dict[str, Any]]:
    """All measurements that are kept, by name."""
    paths = sorted((into / "results").glob("*.json"))
    return [_read(path) for path in paths]


def _read(path: Path) -> dict[str, Any]:
    """Read a result; older ones say floors in place of baselines."""
    text = path.read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text.replace('"floors":', '"baselines":'))
    return result


def chosen_by(result: Mapping[str, Any]) -> str:
    """Which facts chose the epoch of a result, in words.

    Results that were measured before their protocol said so were chosen with the filter of all splits; and in figures
    of curves test stood in the place of validation.
    """
    split, filtered = _chosen_on(result), "all splits"
    epoch = result["protocol"].get("epoch")
    if epoch is not None:
        split, filtered = epoch["chosen_on"], epoch["filter"]
    if split is None:
        return "the last epoch"
    return f"{split}, {filtered.removeprefix('known answers of ').removesuffix(' left out')} in the filter"


def _chosen_on(result: Mapping[str, Any]) -> str:
    return "test" if "curves" in result else "valid"


def describe_training(run: OpenedRun) -> dict[str, Any]:
    """What a training did, and what its report on test says."""
    history, config, report = (
        run.folder.read_history(),
        run.folder.read_config(),
        run.folder.read_report(),
    )
    return {
        **describe(config, report),
        "epochs": len(history),
        "best_epoch": report.best_epoch,
        "valid_mrr": report.valid_mrr,
        "seconds": round(sum(line.seconds for line in history), 1),
        "parameters": sum(parameter.numel() for parameter in run.model.bare.parameters()),
    }


def describe_evaluation(
    config: Mapping[str, Any], evaluation: Evaluation, seconds: float
) -> dict[str, Any]:
    """What an evaluation says that belongs to no training of its own."""
    return describe(config, evaluation) | {"seconds": round(seconds, 1)}


def describe(config: Mapping[str, Any], report: Evaluation) -> dict[str, Any]:
    """Metrics, protocol and settings."""
    metrics = report.metrics.as_dict()
    return {
        "data": config["data"],
        "model": config["model"]["name"],
        "metrics": metrics,
        "interval": metrics.pop("mrr_interval"),
        "protocol": report.protocol.as_dict(),
        "baselines": {name: baseline.mrr for name, baseline in report.baselines.items()},
        "by": {
            group: groups for group, groups in report.as_dict()["by"].items() if group in GROUPS
        },
        "config": override(config, []),
    }


def _place(point: Point) -> dict[str, Any]:
    """Where a point of a figure stands."""
    return {"series": point.series, "x": point.x} if point.series else {}

"""Results as files: one JSON file per measurement, with what is needed to trust and repeat it."""

import json
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from getd.evaluation.protocol import Protocol
from getd.evaluation.record import Record
from getd.evaluation.report import BASELINES, Evaluation
from getd.experiments.rows import Point
from getd.io.atomic import atomic_path
from getd.io.environment import VERSIONS, commit_of, machine_facts
from getd.runs.config import Config
from getd.runs.opened import OpenedRun
from getd.runs.records import StoredConfig
from getd.tuning.trial import Trial

GROUPS = ("arity", "position", "seen")
Number = int | float  # whole numbers stay whole in a file
Numbers = tuple[float, ...]
WholeNumbers = tuple[int, ...]
Values = dict[str, float]  # by name
Table = dict[str, Any]  # of a config, or another part of a file
MEASURED = AliasChoices("counts", "measured", "found")  # files say "found"


class Result(Record):
    """A measurement, and where, when and with what it was made."""

    row: str = ""
    seed: int = 0
    versions: dict[str, str] = Field(default_factory=dict)
    commit: str | None = None  # None: the package did not run from a checkout
    machine: Table = Field(default_factory=dict)


class Curves(Record):
    """Losses and MRR of a training by epoch."""

    epoch: WholeNumbers = ()
    train_loss: Numbers = ()
    test_loss: Numbers = ()
    test_mrr: Numbers = ()


class Measurement(Result):
    """The metrics of a trained model, or of several models as one."""

    series: str = ""  # of a figure
    x: Number | None = None  # of a figure
    data: str = ""
    model: str = ""
    metrics: dict[str, Number]
    interval: tuple[float, float] | None = None  # 95 %, of the MRR
    protocol: Protocol = Protocol(split="test", trained_on=("train",))
    baselines: Values = Field(default={}, validation_alias=BASELINES)
    by: Table = Field(default_factory=dict)  # metrics by group
    config: Table = Field(default_factory=dict)  # as written; ``settings`` is parsed
    epochs: int | None = None
    best_epoch: int | None = None
    valid_mrr: float | None = None
    seconds: float = 0.0
    parameters: int = 0  # 0: not counted
    published: Values = Field(default_factory=dict)
    curves: Curves | None = None
    members: WholeNumbers = ()  # the seeds of derived rows
    rows: tuple[str, ...] = ()  # of combined models
    memory: Table = Field(default_factory=dict)  # the weights of derived rows

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank on test; of a study, on validation."""
        return self.metrics["mrr"]

    @property
    def settings(self) -> Config:
        """The config, parsed: settings that came later have their default."""
        return Config.parse(self.config)


class StudyMeasurement(Measurement):
    """The trials of a study; its metrics are those of validation."""

    space: Table
    trials: list[Trial]
    best: int  # the number of the best trial
    importances: Values


class DataStatistics(Record):
    """The counts of a data set: entities, relations, and facts of train, valid and test."""

    counts: WholeNumbers = Field((), validation_alias=MEASURED, serialization_alias="found")
    published: WholeNumbers = ()
    baselines: Values = Field(default={}, validation_alias=BASELINES)  # their MRR on test
    chance: float | None = None  # the MRR of candidates in random order


class Statistics(Result):
    rows: dict[str, DataStatistics]


class ModelComplexity(Record):
    """The parameters of a model, by formula and counted."""

    formula: str = ""
    counted: int | None = None
    fully_expressive: bool | None = None  # None: neither shown nor refuted
    published: bool | None = None  # None: the paper does not say


class Complexity(Result):
    rows: dict[str, ModelComplexity]


class Seconds(Record):
    """How long a training and its parts take."""

    epoch_seconds: Number
    total_seconds: Number
    inference_seconds: Number


class Cost(Result):
    """The time of GETD on WikiPeople-3."""

    measured: Seconds = Field(validation_alias=MEASURED, serialization_alias="found")
    config: Table = Field(default_factory=dict)
    epochs: int = 0
    published: Seconds


class CheckedClaim(Record):
    """A claim of the paper with its verdict: shown, refuted or not measured."""

    claim: str
    rule: str = ""
    verdict: str
    figures: str


class Claims(Result):
    claims: list[CheckedClaim]


Measurements = list[Measurement]
TABLES = {kind.__name__.lower(): kind for kind in (Statistics, Complexity, Cost, Claims)}


def result_path(folder: Path, point: Point) -> Path:
    return folder / "results" / f"{point.name}.json"


def write_result(folder: Path, point: Point, result: Result) -> Path:
    """Write a measurement with the machine, the versions and the commit."""
    content = {"row": point.row, "seed": point.seed}
    if point.series:
        content |= {"series": point.series, "x": point.x}
    content |= result.model_dump(mode="json", exclude_unset=True, by_alias=True)

    machine = machine_facts(*VERSIONS)
    versions = machine.pop("versions")
    commit = commit_of()
    if commit is not None:
        versions["getd"] += f"+{commit}"
    content |= {"versions": versions, "commit": commit, "machine": machine}

    path = result_path(folder, point)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    return path


def read_results(folder: Path) -> list[Result]:
    """Read all measurements of a folder, sorted by file name."""
    paths = sorted((folder / "results").glob("*.json"))
    return [parse_result(json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def parse_result(content: Table) -> Result:
    """Make a typed result of the content of a file."""
    row = content["row"]
    kind = StudyMeasurement if row.startswith("tuning/") else Measurement
    return TABLES.get(row, kind).model_validate(content)


def describe_training(run: OpenedRun, **more: Any) -> Measurement:
    """Return what a training did, and what its report says about test."""
    history = run.folder.read_history()
    report = run.folder.read_report()

    return measurement(
        run.folder.read_config(),
        report,
        epochs=len(history),
        best_epoch=report.best_epoch,
        valid_mrr=report.valid_mrr,
        seconds=round(sum(line.seconds for line in history), 1),
        parameters=sum(parameter.numel() for parameter in run.model.bare.parameters()),
        **more,
    )


def measurement(config: StoredConfig, evaluation: Evaluation, **more: Any) -> Measurement:
    """Make a result of an evaluation and the config of its run; ``more`` are other fields."""
    metrics = evaluation.metrics.as_dict()
    interval = metrics.pop("mrr_interval")
    groups = evaluation.as_dict()["by"]

    return Measurement(
        data=config["data"],
        model=config.model_name,
        metrics=metrics,
        interval=interval,
        protocol=evaluation.protocol,
        baselines={name: baseline.mrr for name, baseline in evaluation.baselines.items()},
        by={group: groups[group] for group in GROUPS if group in groups},
        config=dict(config),
        **more,
    )


def chosen_by(result: Measurement) -> str:
    """Say in words which facts chose the epoch of a result.

    Older results do not say it: the filter was that of all splits, and in figures of curves test
    stood in for validation.
    """
    epoch = result.protocol.epoch
    if epoch is None:
        split = "valid" if result.curves is None else "test"
        return f"{split}, all splits in the filter"
    if epoch.chosen_on is None:
        return "the last epoch"
    splits = (epoch.filter or "").removeprefix("known answers of ").removesuffix(" left out")
    return f"{epoch.chosen_on}, {splits} in the filter"

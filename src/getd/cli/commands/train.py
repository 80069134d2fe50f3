"""``getd train``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.cli.options import Json, Reading
from getd.cli.output import (
    download_progress,
    print_json,
    print_line,
    print_notices,
    print_table,
    training_progress,
)
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.evaluation.report import Evaluation
    from getd.facts.knowledge_base import KnowledgeBase
    from getd.run import Run


def train(
    data: str | None = None,
    /,
    *,
    model: Annotated[
        str | None, Parameter(help="The model (see: getd models); getd where none is named.")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="The run folder; runs/DATA-MODEL where it is not given.")
    ] = None,
    config: Annotated[
        Path | None, Parameter(help="A TOML file with [model] and [training], and perhaps data.")
    ] = None,
    set: Annotated[  # noqa: A002
        list[str] | None,
        Parameter(
            help="section.key=value, e.g. training.epochs=20; any number of times.", negative=""
        ),
    ] = None,
    seed: Annotated[
        int | None, Parameter(help="Of the weights, the batches and the dropout (training.seed).")
    ] = None,
    resume: Annotated[
        bool, Parameter(help="Go on with the run that is there.", negative="")
    ] = False,
    overwrite: Annotated[
        bool, Parameter(help="Start anew where there is a run.", negative="")
    ] = False,
    quiet: Annotated[bool, Parameter(help="No progress.", negative="")] = False,
    reading: Reading | None = None,
    json: Json = False,
) -> None:
    """Train a model and leave a run folder, which evaluate and predict read.

    Parameters
    ----------
    data
        A folder with train, valid and test, a single file, or the name of a data set; else that of the config.
    """
    from getd.api import train as train_model
    from getd.config import override, read_toml
    from getd.datasets.load import load
    from getd.runs.config import Config
    from getd.runs.folder import RunFolder

    tables = override(read_toml(config) if config else {}, set or [])
    if seed is not None:
        tables = override(tables, [f"training.seed={seed}"])
    data = data or tables.get("data")
    if data is not None:
        tables["data"] = data  # so that the run's config.toml can be trained from
    parsed = Config.parse(tables, model)  # a mistake shows before anything is read

    if data is not None:
        with download_progress() as progress:
            kb = load(data, progress=progress, **(reading or Reading()).settings())
    elif resume and out:
        kb = RunFolder(out).read_knowledge_base()
    else:
        raise ConfigError("no data: name it after train, or as data = … in the config")
    print_notices(kb.notices)

    epochs = parsed.training.epochs
    if resume and out and RunFolder(out).exists() and "epochs" not in parsed.given["training"]:
        stored = RunFolder(out).read_config().get("training", {}).get("epochs")
        epochs = stored if isinstance(stored, int) else epochs
    with training_progress(quiet, epochs) as callbacks:
        run = train_model(
            kb, out=out, config=parsed, resume=resume, overwrite=overwrite, callbacks=callbacks
        )
    show_training(run, kb, json)


def show_training(run: Run, kb: KnowledgeBase, json: bool) -> None:
    """What came of a training."""
    report = run.folder.read_report() if "test" in kb.splits else None
    curves = run.path / "curves.svg"
    if find_spec("matplotlib") is None:
        print_notices(["learning curves are drawn with matplotlib: pip install 'getd[plots]'"])
    print_notices(run.notices)
    if json:
        epochs = len(run.folder.read_history())
        found = report.as_dict() if report else None
        print_json(
            {"run": str(run.path), "epochs": epochs, "report": found, "notices": run.notices}
        )
        return
    if report:
        show_report(report, run.folder.read_config().get("published"))
    print_line(f"run: {run.path}{f', learning curves: {curves}' if curves.exists() else ''}")


def show_report(report: Evaluation, published: dict[str, float] | None = None) -> None:
    """Metrics beside chance, the baselines and what was published, and by which protocol they were measured."""
    low, high = report.mrr_interval
    keys = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")
    rows: list[list[object]] = [
        ["this model", *(getattr(report, key) for key in keys), f"{low:.4f} – {high:.4f}"]
    ]
    rows += [
        [f"baseline: {name}", *(getattr(baseline, key) for key in keys), ""]
        for name, baseline in report.baselines.items()
    ]
    rows.append(["random order", report.mrr_at_chance, None, None, None, ""])
    if published:
        rows.append(["published", *(published.get(key) for key in keys), ""])
    protocol = report.protocol
    title = f"{protocol.split}: {report.questions:,} questions, filtered, ties {protocol.ties}"
    print_table(title, ["", "MRR", "Hits@1", "Hits@3", "Hits@10", "95 % of MRR"], rows)
    print_line(f"protocol: {protocol.sentence()}")

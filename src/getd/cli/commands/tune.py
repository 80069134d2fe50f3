"""``getd tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from getd.cli.options import Json, Reading
from getd.cli.output import (
    download_progress,
    print_json,
    print_line,
    print_notices,
    print_table,
    tuning_progress,
)
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.api import Tuned
    from getd.tuning.study import Study


def tune(
    data: str | None = None,
    /,
    *,
    model: Annotated[
        str | None, Parameter(help="The model (see: getd models); getd where none is named.")
    ] = None,
    trials: Annotated[
        int, Parameter(help="How many are to be finished in all, by all processes.")
    ] = 50,
    study: Annotated[
        str,
        Parameter(
            help="FILE.db (SQLite) or FILE.journal; with --storage its name there. One that is there goes on."
        ),
    ] = "study.db",
    storage: Annotated[
        str | None,
        Parameter(help="A database for several machines: postgresql+psycopg://user@host/base."),
    ] = None,
    space: Annotated[
        str, Parameter(help="What is searched: paper, wide, or a TOML file.")
    ] = "paper",
    pruning: Annotated[
        Literal["median", "hyperband", "none"],
        Parameter(help="Which trials end early, by their validation curve."),
    ] = "median",
    out: Annotated[
        Path | None,
        Parameter(
            help="The run trained with the best settings; runs/DATA-MODEL-tuned where not given."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        Parameter(help="A TOML file with [model] and [training]: what is not searched."),
    ] = None,
    set: Annotated[  # noqa: A002
        list[str] | None,
        Parameter(
            help="section.key=value, e.g. training.epochs=20; any number of times.", negative=""
        ),
    ] = None,
    seed: Annotated[
        int, Parameter(help="Of the search; that of each training is training.seed.")
    ] = 0,
    quiet: Annotated[bool, Parameter(help="No progress.", negative="")] = False,
    reading: Reading | None = None,
    json: Json = False,
) -> None:
    """Search the best settings on validation, and train a run with them; test is not read.

    Several processes that name the same study share its trials; what was interrupted goes on with the same command. A
    page beside the study, FILE.html, shows all trials.

    Parameters
    ----------
    data
        A folder with train, valid and test, a single file, or the name of a data set; else that of the config.
    """
    from getd.config import override, read_toml
    from getd.datasets.load import load
    from getd.runs.config import Config

    try:
        import optuna  # noqa: F401

        from getd.api import tune as search
    except ImportError:
        raise ConfigError("tuning needs Optuna: pip install 'getd[tune]'") from None
    if trials < 1:
        raise ConfigError(f"--trials: expected at least 1, found {trials}")
    tables = override(read_toml(config) if config else {}, set or [])
    Config.parse(tables, model)  # a mistake shows before anything is read
    data = data or tables.get("data")
    if data is None:
        raise ConfigError("no data: name it after tune, or as data = … in the config")
    tables["data"] = data
    with download_progress() as progress:
        kb = load(data, progress=progress, **(reading or Reading()).settings())
    print_notices(kb.notices)
    with tuning_progress(quiet, trials) as (callbacks, retraining):
        found = search(
            kb, model, study=study, trials=trials, space=space, config=tables, storage=storage, pruning=pruning, seed=seed,
            out=out, callbacks=callbacks, retraining=retraining,
        )  # fmt: skip
    page = draw_page(found.study, Path(study).with_suffix(".html"))
    show_tuning(found, page, json)


def show_tuning(found: Tuned, page: Path | None, json: bool) -> None:
    """What came of a study."""
    from getd.tuning.trial import counts

    trials, best = found.study.trials(), found.best
    if json:
        print_json(
            {
                "trials": counts(trials),
                "best": {
                    "trial": best.number,
                    "valid_mrr": best.mrr,
                    "settings": dict(best.values),
                },
                "importances": found.study.importances(),
                "run": str(found.run.path) if found.run else None,
                "page": str(page) if page else None,
            }
        )
        return
    done = sorted(
        (trial for trial in trials if trial.state == "complete"),
        key=lambda trial: -(trial.mrr or 0.0),
    )
    names = list(found.study.space)
    rows = [
        [trial.number, trial.mrr, *(trial.values.get(name) for name in names)] for trial in done[:5]
    ]
    print_table(
        "The best settings, by validation MRR",
        ["trial", "MRR", *(name.split(".")[1] for name in names)],
        rows,
        0,
    )
    where = (
        f"run: {found.run.path} (test is not asked yet: getd evaluate {found.run.path})"
        if found.run
        else ""
    )
    print_line(where or "the run is being trained by another process")
    if page:
        print_line(f"all trials: {page}")


def draw_page(study: Study, path: Path) -> Path | None:
    """The page of a study; needs matplotlib."""
    try:
        from getd.tuning.study_page import write_page
    except ImportError:
        print_notices(["the page of a study is drawn with matplotlib: pip install 'getd[plots]'"])
        return None
    return write_page(study, path)

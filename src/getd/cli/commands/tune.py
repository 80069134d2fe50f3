"""``getd tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.choices import Pruning
from getd.cli.inputs import load_data, read_config
from getd.cli.options import Assignments, ConfigFile, Json, Model, OptionalData, Quiet, Reading
from getd.cli.output import print_json, print_line, print_notices, print_table
from getd.cli.progress import tuning_progress
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.api import Tuned

MAX_ROWS = 5  # trials in the table; the page shows all


def tune(
    data: OptionalData = None,
    /,
    *,
    model: Model = None,
    trials: Annotated[
        int, Parameter(help="Number of trials to finish, by all processes together.")
    ] = 50,
    study: Annotated[
        str,
        Parameter(
            help="Study: FILE.db (SQLite), FILE.journal, or a name with --storage. "
            "An existing study is resumed."
        ),
    ] = "study.db",
    storage: Annotated[
        str | None,
        Parameter(help="Database for several machines: postgresql+psycopg://user@host/base."),
    ] = None,
    space: Annotated[
        str, Parameter(help="Settings to search: paper, wide, or a TOML file.")
    ] = "paper",
    pruning: Annotated[Pruning, Parameter(help="How to stop bad trials early.")] = "median",
    out: Annotated[
        Path | None,
        Parameter(help="Folder of the run with the best settings. Default: runs/DATA-MODEL-tuned."),
    ] = None,
    config: ConfigFile = None,
    set: Assignments = None,  # noqa: A002
    seed: Annotated[
        int, Parameter(help="Random seed of the search. Each training uses training.seed.")
    ] = 0,
    quiet: Quiet = False,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """Search for the best settings, then train a run with them.

    Settings are compared on validation; test is not read. Processes that name the same study share
    its trials. If interrupted, the same command resumes. A page next to the study, FILE.html, shows
    all trials.
    """
    from getd.api import tune as search

    if trials < 1:
        raise ConfigError(f"--trials: expected at least 1, found {trials}")
    settings = read_config(config, set, model, data)
    if settings.data is None:
        raise ConfigError("no data: name it after tune, or as data = … in the config")
    kb = load_data(settings.data, reading)

    with tuning_progress(quiet, trials) as bars:
        result = search(
            kb,
            study=study,
            trials=trials,
            space=space,
            config=settings,
            storage=storage,
            pruning=pruning,
            seed=seed,
            out=out,
            on_trial=bars.on_trial,
            trial_callbacks=bars.trial_callbacks,
            callbacks=bars.training_callbacks(),
        )

    if result.page is None:
        print_notices(["the page of a study needs matplotlib: pip install 'getd[plots]'"])
    if json:
        print_json(result.as_dict())
    else:
        _show(result)


def _show(result: Tuned) -> None:
    complete = [trial for trial in result.study.trials() if trial.state == "complete"]
    complete.sort(key=lambda trial: -(trial.mrr or 0.0))
    names = list(result.study.space)
    rows = []
    for trial in complete[:MAX_ROWS]:
        rows.append([trial.number, trial.mrr, *map(trial.values.get, names)])
    header = ["trial", "MRR", *(name.split(".")[1] for name in names)]
    print_table("The best settings, by validation MRR", header, rows, left=0)

    if result.run is None:
        print_line("another process is training the run")
    else:
        path = result.run.path
        print_line(f"run: {path} (not evaluated on test yet: getd evaluate {path})")
    if result.page is not None:
        print_line(f"all trials: {result.page}")

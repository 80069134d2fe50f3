"""``getd train``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.choices import Preset
from getd.cli.inputs import load_data, read_config
from getd.cli.options import (
    Assignments,
    ConfigFile,
    Json,
    Model,
    OptionalData,
    Quiet,
    Reading,
    flag,
)
from getd.cli.progress import search_progress, training_progress
from getd.cli.reports import show_training
from getd.errors import ConfigError


def train(
    data: OptionalData = None,
    /,
    *,
    model: Model = None,
    out: Annotated[Path | None, Parameter(help="Run folder. Default: runs/DATA-MODEL.")] = None,
    config: ConfigFile = None,
    set: Assignments = None,  # noqa: A002
    preset: Annotated[
        Preset | None,
        Parameter(
            help="How to choose settings that you do not give. auto (default): by rules, from the "
            "shape of the data. paper: plain defaults and the paper's loss, with GETD as the model."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        Parameter(
            help="Minutes to spend on a search. Candidates of several kinds and sizes compete on "
            "validation; the best one, or a combination, becomes the run."
        ),
    ] = None,
    seed: Annotated[
        int | None, Parameter(help="Random seed for weights, batches and dropout (training.seed).")
    ] = None,
    resume: Annotated[bool, flag("Resume the run in the run folder.")] = False,
    overwrite: Annotated[bool, flag("Replace the run in the run folder.")] = False,
    quiet: Quiet = False,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """Train a model and write a run folder.

    Settings that you do not give are chosen from the shape of the data. When training ends, the run
    is evaluated on test, once.
    """
    from getd.api import train as train_model

    # A mistake in the settings shows before any data is read.
    settings = read_config(config, set, model, data, seed, preset)
    if settings.data is None and not (resume and out):
        raise ConfigError("no data: name it after train, or as data = … in the config")
    kb = None if settings.data is None else load_data(settings.data, reading)

    with training_progress(quiet) as callbacks, search_progress(quiet, budget) as search:
        run = train_model(
            kb,
            out=out,
            config=settings,
            resume=resume,
            overwrite=overwrite,
            callbacks=callbacks,
            budget=budget,
            search_callbacks=search,
        )
    show_training(run, json, has_budget=budget is not None)

"""``getd demo``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import Json, Quiet
from getd.cli.progress import training_progress
from getd.cli.reports import show_answers, show_training


def demo(
    *,
    out: Annotated[
        Path, Parameter(help="Run folder. An earlier run of the demo is replaced.")
    ] = Path("runs/demo"),
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on built-in data and show metrics and predictions.

    It takes less than a minute on two cores.
    """
    from getd.api import demo as run_demo

    with training_progress(quiet) as callbacks:
        result = run_demo(out, callbacks)
    show_training(result.run, json)
    if json:
        return

    print("\nFive held-out facts, each with one entity hidden:\n")
    for example in result.examples:
        show_answers(example.question, example.answers, example.right)

"""``getd demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from getd.cli.commands.predict import show_answers
from getd.cli.commands.train import show_training
from getd.cli.options import Json
from getd.cli.output import training_progress


def demo(
    *,
    out: Annotated[
        Path,
        Parameter(help="The run folder; what is there is replaced if it is a run of the demo."),
    ] = Path("runs/demo"),
    quiet: Annotated[bool, Parameter(help="No progress.", negative="")] = False,
    json: Json = False,
) -> None:
    """Train on the built-in demo, show metrics beside the baselines and five predictions; under a minute on two cores."""
    from getd.api import draw_pictures
    from getd.run import Run
    from getd.workflows.demo import DEMO_CONFIG, sample_questions, train_demo

    with training_progress(quiet, DEMO_CONFIG["training"]["epochs"]) as callbacks:
        run = Run(train_demo(out, callbacks))
    draw_pictures(run.folder)
    show_training(run, run.kb, json)
    if json:
        return
    print("\nFive facts that were held out, with one entity hidden:\n")
    known = run.kb.known("train", "valid")
    questions = sample_questions(run.kb)
    answered = run.predictor.answer([question for question, _ in questions], top=3, known=known)
    for (question, right), answers in zip(questions, answered, strict=True):
        show_answers(question, answers, right)

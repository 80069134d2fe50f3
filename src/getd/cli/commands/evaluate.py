"""``getd evaluate``."""

from typing import Annotated

from cyclopts import Parameter

from getd.choices import Grouping, Split, Ties
from getd.cli.inputs import open_run
from getd.cli.options import Json, RunPath, ScorePrecision
from getd.cli.output import print_json, print_table
from getd.cli.reports import METRICS, show_report, values_of


def evaluate(
    run: RunPath,
    /,
    *,
    split: Annotated[Split, Parameter(help="Split to evaluate.")] = "test",
    by: Annotated[Grouping | None, Parameter(help="Also show the metrics of each group.")] = None,
    ties: Annotated[Ties, Parameter(help="Rank of tied answers.")] = "realistic",
    sample: Annotated[
        int | None, Parameter(help="Evaluate only this many facts, drawn at random.")
    ] = None,
    precision: ScorePrecision = "fp32",
    memory: Annotated[bool, Parameter(help="Use the memory of the run, if it has one.")] = True,
    json: Json = False,
) -> None:
    """Rank the answers of a split and report metrics."""
    opened = open_run(run, memory)
    evaluation = opened.evaluate(split, ties=ties, sample=sample, precision=precision)
    if json:
        print_json(evaluation.as_dict())
        return

    show_report(evaluation)
    if by is None:
        return
    rows = []
    for name, group in evaluation.by[by].items():
        rows.append([name, group.questions, *values_of(group), *group.baselines.values()])
    baselines = [f"MRR of {baseline}" for baseline in evaluation.baselines]
    print_table(f"By {by}", [by, "questions", *METRICS.values(), *baselines], rows)

"""``getd evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from getd.cli.commands.train import show_report
from getd.cli.options import Json
from getd.cli.output import print_json, print_table


def evaluate(
    run: Path,
    /,
    *,
    split: Annotated[
        Literal["train", "valid", "test"], Parameter(help="Which facts are asked for.")
    ] = "test",
    by: Annotated[
        Literal["arity", "position", "relation", "seen"] | None,
        Parameter(help="Show the metrics of these groups too."),
    ] = None,
    ties: Annotated[
        Literal["realistic", "optimistic", "pessimistic"], Parameter(help="Which rank ties get.")
    ] = "realistic",
    sample: Annotated[int | None, Parameter(help="Only this many facts, drawn at random.")] = None,
    memory: Annotated[bool, Parameter(help="With the memory of the run, where it has one.")] = True,
    json: Json = False,
) -> None:
    """Rank the answers of a split and report how good they are, beside two baselines.

    Parameters
    ----------
    run
        The folder that training left.
    """
    from getd.cli.opening import open_run

    found = open_run(run, memory).evaluate(split, ties=ties, sample=sample)
    if json:
        print_json(found.as_dict())
        return
    show_report(found)
    if by:
        keys = ("questions", "mrr", "hits_at_1", "hits_at_3", "hits_at_10")
        baselines = list(found.baselines)
        rows = [
            [
                name,
                *(getattr(group, key) for key in keys),
                *(group.baselines[baseline] for baseline in baselines),
            ]
            for name, group in found.by[by].items()
        ]
        header = [
            by,
            "questions",
            "MRR",
            "Hits@1",
            "Hits@3",
            "Hits@10",
            *(f"MRR of {baseline}" for baseline in baselines),
        ]
        print_table(f"By {by}", header, rows)

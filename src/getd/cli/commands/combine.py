"""``getd combine``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.cli.options import Json, Overwrite, Quiet
from getd.cli.output import print_json, print_line, print_notices, print_table
from getd.cli.progress import counting_progress
from getd.cli.reports import show_report

if TYPE_CHECKING:
    from getd import Run


def combine(
    *runs: Annotated[Path, Parameter(help="Run folders, two or more.")],
    out: Annotated[Path, Parameter(help="Folder of the new run.")],
    memory: Annotated[bool, Parameter(help="Add a memory of the training facts.")] = True,
    sample: Annotated[
        int | None, Parameter(help="Fit on at most this many random validation facts per arity.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Combine trained runs into a better one.

    The result is a new run that does not need the others. Its score is a weighted sum of their
    scores, with weights fitted on validation for each arity and position. All runs must have the
    same data.
    """
    from getd.api import combine as combine_runs

    with counting_progress("combining", quiet) as progress:
        run = combine_runs(
            runs, out, memory=memory, sample=sample, overwrite=overwrite, progress=progress
        )
    print_notices(run.notices)

    report = run.folder.read_report() if "test" in run.kb.splits else None
    if json:
        combined = run.folder.read_combination().model_dump()
        record = report.as_dict() if report else None
        print_json({"run": str(out), **combined, "report": record, "notices": run.notices})
        return
    _show_members(run)
    if report:
        show_report(report)
    print_line(f"run: {out}")


def _show_members(run: Run) -> None:
    combined = run.folder.read_combination()
    by_slot = [weights for slot, weights in combined.weights.items() if slot != "relation"]

    rows: list[list[object]] = []
    for number, member in enumerate(combined.members):
        weight = sum(weights[number] for weights in by_slot) / len(by_slot)
        rows.append([member.run, member.model, member.valid_mrr, weight])

    rows.append(["combined", "", combined.valid_mrr, None])
    if run.folder.has_memory():
        rows.append(
            ["combined, with memory", "", run.folder.read_json("memory.json")["valid_mrr"], None]
        )
    print_table("Validation", ["run", "model", "MRR", "mean weight"], rows, left=2)

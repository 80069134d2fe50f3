"""``getd remember``."""

from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import Json, RunPath
from getd.cli.output import print_json, print_table


def remember(
    run: RunPath,
    /,
    *,
    sample: Annotated[
        int | None, Parameter(help="Fit on at most this many random validation facts.")
    ] = None,
    json: Json = False,
) -> None:
    """Add a memory of the training facts to a run.

    Scores then also depend on which entities co-occur in training facts. The model is not trained
    again. The weights of the memory are learnt from the training facts, fitted on validation and
    stored in the run. All commands that use the run then use the memory too. Test is not read.
    """
    from getd.api import open_run

    fitted = open_run(run, memory=False).remember(sample)
    weights = {name: values.model_dump() for name, values in fitted.weights.items()}
    if json:
        mrr = {"without": fitted.mrr_without, "with": fitted.mrr}
        print_json({"run": str(run), "valid_mrr": mrr, "weights": weights})
        return

    mrrs = [["without memory", fitted.mrr_without], ["with memory", fitted.mrr]]
    print_table("Validation", ["", "MRR"], mrrs)
    rows = []
    for slot, values in weights.items():
        rows.append([slot, "the model", values["scale"], None])
        for source, share in values["sources"].items():
            rows.append([slot, source, share["share"], share["log_share"]])
    print_table("Weights", ["arity-position", "source", "share", "log share"], rows, left=2)

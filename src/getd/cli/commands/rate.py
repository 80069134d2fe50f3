"""``getd rate``, called ``getd score`` before."""

from typing import Annotated

from cyclopts import Parameter

from getd.cli.inputs import open_run
from getd.cli.options import FactFile, Format, Json, RunPath, read_format
from getd.cli.output import fact_text, print_json, print_table
from getd.cli.progress import counting_progress
from getd.errors import ConfigError


def rate(
    run: RunPath,
    facts: FactFile | None = None,
    /,
    *,
    suspicious: Annotated[
        int | None,
        Parameter(help="List this many facts of the run that look most like mistakes."),
    ] = None,
    format: Format = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Rate facts: plausibility, confidence, rank of each entity.

    Name a file of facts, or pass --suspicious N to check the facts of the run itself.
    """
    if (facts is None) == (suspicious is None):
        raise ConfigError("name a file of facts, or ask for --suspicious N")
    if suspicious is not None and suspicious < 1:
        raise ConfigError(f"expected --suspicious of 1 or more, found {suspicious}")

    opened = open_run(run)
    if facts is not None:
        ratings = opened.rate(facts, read_format(format))
    else:
        with counting_progress("rating facts") as progress:
            ratings = opened.suspicious(suspicious or 0, progress)

    if json:
        from getd.prediction.records import RatingRecord

        print_json({"facts": [RatingRecord.model_validate(rating).as_dict() for rating in ratings]})
        return
    rows = []
    for rating in ratings:
        numbers = [rating.plausibility, rating.fit, rating.confidence]
        ranks = " ".join(f"{rank:g}" for rank in rating.ranks)
        rows.append([fact_text(rating.fact), *numbers, ranks, "known" if rating.known else ""])
    header = ["fact", "plausibility", "fit", "confidence", "ranks", ""]
    print_table("Facts", header, rows)

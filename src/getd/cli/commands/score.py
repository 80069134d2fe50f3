"""``getd score``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from getd.cli.options import Form, Json, chosen
from getd.cli.output import counting_progress, print_json, print_table
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.prediction.rate import Rating


def score(
    run: Path,
    facts: Path | None = None,
    /,
    *,
    suspicious: Annotated[
        int | None,
        Parameter(
            help="List this many of the run's own facts, those that look most like mistakes."
        ),
    ] = None,
    format: Form = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Rate facts: how plausible they are, how likely true, and the rank of each entity in its place.

    Parameters
    ----------
    run
        The folder that training left.
    facts
        A file of facts, in any form that they are read from.
    """
    from getd.cli.opening import open_run

    if (facts is None) == (suspicious is None):
        raise ConfigError("name a file of facts, or ask for --suspicious N")
    if suspicious is not None and suspicious < 1:
        raise ConfigError(f"expected --suspicious of 1 or more, found {suspicious}")
    opened = open_run(run)
    if facts is None:
        with counting_progress("rating facts") as progress:
            rated = opened.suspicious(suspicious or 0, progress)
    else:
        rated = opened.rate(facts, chosen(format))
    if json:
        print_json({"facts": [_record(rating) for rating in rated]})
        return
    print_table("Facts", *_table(rated))


def _record(rating: Rating) -> dict[str, Any]:
    return {**asdict(rating), "fact": list(rating.fact), "ranks": list(rating.ranks)}


def _table(rated: Sequence[Rating]) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = []
    for rating in rated:
        relation, *entities = rating.fact
        ranks = " ".join(f"{rank:g}" for rank in rating.ranks)
        numbers = [rating.plausibility, rating.fit, rating.confidence, ranks]
        rows.append(
            [f"{relation}({', '.join(entities)})", *numbers, "known" if rating.known else ""]
        )
    return ["fact", "plausibility", "fit", "confidence", "ranks", ""], rows

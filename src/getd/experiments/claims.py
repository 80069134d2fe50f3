"""What the paper's prose claims: ``claims.toml`` holds the claims, results decide them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from getd.config import read_toml
from getd.experiments import figure_checks, table_checks
from getd.experiments.result import CheckedClaim
from getd.experiments.result_index import NotMeasured, ResultIndex
from getd.experiments.rows import PACKAGE
from getd.experiments.table_checks import Verdict


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, when it counts as shown, and the check that says so in code."""

    text: str
    rule: str
    figures: str  # the template of the figures that decide it
    check: Callable[[ResultIndex], Verdict]


@cache
def all_claims() -> tuple[Claim, ...]:
    """Read the claims in the order of the paper."""
    checks = vars(table_checks) | vars(figure_checks)
    claims = []
    for table in read_toml(PACKAGE / "claims.toml")["claim"]:
        texts = {key: table.pop(key, "") for key in ("text", "rule", "figures")}
        check = checks[table.pop("check")]
        claims.append(Claim(**texts, check=partial(check, **table)))
    return tuple(claims)


def check_claims(results: ResultIndex) -> list[CheckedClaim]:
    """Decide each claim: shown, refuted, or not measured and why."""
    return [check_claim(claim, results) for claim in all_claims()]


def check_claim(claim: Claim, results: ResultIndex) -> CheckedClaim:
    try:
        decided = claim.check(results)
        figures = claim.figures.format(**decided.figures)
        verdict = "shown" if decided.holds else "refuted"
    except NotMeasured as missing:
        figures = str(missing)
        verdict = "not measured"
    return CheckedClaim(claim=claim.text, rule=claim.rule, verdict=verdict, figures=figures)

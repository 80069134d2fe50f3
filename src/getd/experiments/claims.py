"""What the paper's prose claims, each claim with the rule by which results decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from getd.experiments import figure_checks as figures
from getd.experiments import table_checks as tables
from getd.experiments.findings import Findings, NotMeasured, Results
from getd.experiments.table_checks import Check

DROPOUT, NO_DROPOUT = (
    "figures/overfitting-wikipeople-4",
    "figures/overfitting-no-dropout-wikipeople-4",
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, when it counts as shown, and the check that says the same in code."""

    text: str
    rule: str
    check: Check


def check_claims(results: Results) -> list[dict[str, Any]]:
    """Each claim with its verdict: shown, refuted, or not measured and why."""
    findings = Findings(results)
    return [check_claim(claim, findings) for claim in CLAIMS]


def check_claim(claim: Claim, findings: Findings) -> dict[str, Any]:
    """One of them."""
    told = {"claim": claim.text, "rule": claim.rule}
    try:
        holds, seen = claim.check(findings)
    except NotMeasured as missing:
        return {**told, "verdict": "not measured", "figures": missing.reason}
    return {**told, "verdict": "shown" if holds else "refuted", "figures": seen}


def _above_nalp(data: str, gain: float, hits: float) -> Claim:
    return Claim(
        f"GETD is above NaLP on {tables.N_ARY[data]} by {gain} MRR and {100 * hits:.0f} % of Hits@1",
        f"both at least that, to within rounding ({tables.ROUNDED} MRR, half a percent)",
        tables.above_nalp(data, gain, hits),
    )


def _in_order(data: str) -> Claim:
    return Claim(f"GETD ≥ n-TuckER ≥ n-CP on {tables.N_ARY[data]}", "by MRR", tables.in_order(data))


def _overfitting(row: str, where: str) -> list[Claim]:
    return [
        Claim(
            f"{where}: the test loss of n-TuckER rises, those of GETD and n-CP converge",
            "n-TuckER ends more than 10 % above its lowest point, the others less than 10 %",
            figures.loss_rises(row),
        ),
        Claim(
            f"{where}: the MRR of n-TuckER rises, then falls; those of GETD and n-CP converge",
            "n-TuckER ends more than 10 % below its highest point, the others less than 10 %",
            figures.mrr_falls(row),
        ),
        Claim(
            f"{where}: the test loss of n-TuckER rises after 20 epochs",
            "its lowest point is between epochs 15 and 25, and the last epoch is above it",
            figures.loss_turns_at(row, epoch=20, around=5),
        ),
        Claim(
            f"{where}: the training losses of all three keep falling",
            "the mean over ten epochs is always below that of the ten before",
            figures.train_losses_fall(row, epochs=10),
        ),
        Claim(
            f"{where}: GETD is above n-CP",
            "by test MRR after the last epoch",
            figures.ends_above(row, "GETD", "n-CP"),
        ),
    ]


def _synthetic(arity: int) -> list[Claim]:
    return [
        Claim(
            f"Synthetic10-{arity}: the MRR of n-TuckER falls as embeddings grow",
            "more than 0.05 below its smallest size at the largest, and nowhere more than 0.05 above the smallest",
            figures.tucker_falls(arity),
        ),
        Claim(
            f"Synthetic10-{arity}: GETD with rank 1 holds as embeddings grow",
            "at no size more than 0.05 below its best",
            figures.ring_holds(arity),
        ),
    ]


def _ranks(data: str, high: float, span: str) -> list[Claim]:
    name = tables.N_ARY[data]
    return [
        Claim(
            f"{name} is flat in the TR rank {span}",
            "less than 0.02 apart",
            figures.flat(data, 20, high),
        ),
        Claim(
            f"{name}: only TR ranks below 5 hurt",
            "every rank below 5 is more than 0.02 below the best, and no other is",
            figures.only_ranks_below_hurt(data, 5),
        ),
    ]


def _falls_with_order(data: str, what: str) -> Claim:
    return Claim(
        f"{what}: MRR is highest at the least order k and falls as k grows",
        "at the paper's shapes: highest at the least order, no step up over 0.005, the last more than 0.005 lower",
        figures.falls_with_order(data),
    )


_SIZES = "WikiPeople-4 by embedding size"
CLAIMS: Sequence[Claim] = (
    Claim(
        "GETD is best on all metrics and all n-ary sets",
        "strictly, one seed each",
        tables.best_on_all_metrics,
    ),
    Claim(
        "GETD, n-CP and n-TuckER are always above RAE and NaLP",
        "each of the three above both, by MRR, on all four n-ary sets",
        tables.tensor_models_above_others,
    ),
    Claim(
        "GETD is over 15 % above the state of the art",
        "MRR against the better of RAE and NaLP as measured here, on average over the four n-ary sets",
        tables.above_state_of_the_art(0.15),
    ),
    _above_nalp("jf17k-3", 0.22, 0.55),
    _above_nalp("jf17k-4", 0.09, 0.12),
    _above_nalp("wikipeople-3", 0.07, 0.25),
    _above_nalp("wikipeople-4", 0.04, 0.12),
    Claim(
        "GETD gains less over NaLP on the 4-ary sets than on the 3-ary ones",
        "by MRR, on WikiPeople and on JF17K",
        tables.smaller_gain_with_four_entities,
    ),
    *(_in_order(data) for data in tables.N_ARY),
    *_overfitting(DROPOUT, "WikiPeople-4, no early stopping"),
    *_overfitting(NO_DROPOUT, "The same without dropout"),
    Claim(
        "WikiPeople-4: 0.4 M parameters (GETD), 0.9 M (n-CP), 10 M (n-TuckER)",
        "cut, not rounded, to these digits",
        figures.parameters_are(DROPOUT, {"GETD": "0.4", "n-CP": "0.9", "n-TuckER": "10"}),
    ),
    *_synthetic(3),
    Claim(
        "Synthetic10-3, size 50: 6.25 M numbers in the core of n-TuckER, 200 in the ring of GETD",
        "n-TuckER learns exactly so many more numbers than GETD",
        figures.core_against_ring("figures/synthetic10-3", "GETD, rank 1", 50, (6_250_000, 200)),
    ),
    *_synthetic(4),
    Claim(
        f"{_SIZES}: GETD is always above n-TuckER and n-CP",
        "at sizes 10, 15, …, 35",
        figures.always_above,
    ),
    Claim(
        f"{_SIZES}: GETD rises and becomes flat",
        "no step down of more than 0.005, the last step smaller than the first",
        figures.rises_and_flattens,
    ),
    Claim(
        f"{_SIZES}: n-TuckER is not stable",
        "some step down of more than 0.005",
        figures.tucker_is_unstable,
    ),
    Claim(f"{_SIZES}: GETD reaches 0.372 at 15", "0.367 or more", figures.reaches(15, 0.372)),
    Claim(
        f"{_SIZES}: GETD at 15 is above n-TuckER over 30",
        "at every size over 30",
        figures.small_above_large(15, 30),
    ),
    Claim(
        f"{_SIZES}: GETD at 35 is 49 % above n-CP",
        "48.5 % or more",
        figures.above_at(35, "n-CP", 0.49, 0.005),
    ),
    Claim(
        f"{_SIZES}: GETD at 35 is 2.8 % above n-TuckER",
        "2.75 % or more",
        figures.above_at(35, "n-TuckER", 0.028, 0.0005),
    ),
    Claim(f"{_SIZES}: GETD has the fewest parameters", "at every size", figures.least_parameters),
    Claim(
        f"{_SIZES}: 0.42 M parameters (GETD), 1.14 M (n-CP), 24 M (n-TuckER) at 30",
        "cut, not rounded, to these digits",
        figures.parameters_are(
            figures.SIZES, {"GETD": "0.42", "n-CP": "1.14", "n-TuckER": "24"}, 30
        ),
    ),
    Claim(
        f"{_SIZES}: GETD has 1.7 % of n-TuckER's parameters at 30",
        "rounded to a tenth of a percent",
        figures.parameter_share(figures.SIZES, 30, 1.7),
    ),
    *_ranks("wikipeople-4", float("inf"), "from about 20 on"),
    *_ranks("jf17k-3", 60, "from 20 to 60"),
    Claim(
        "WikiPeople-4: every order k is above n-TuckER",
        "at the paper's shapes, by MRR",
        figures.orders_above_tucker("wikipeople-4"),
    ),
    Claim(
        "WikiPeople-4: the best order is k = 5, above n-TuckER by 0.024",
        "at the paper's shapes: highest at k = 5, and there above by 0.0235 or more",
        figures.least_order_is_best("wikipeople-4", 0.024),
    ),
    _falls_with_order("wikipeople-4", "WikiPeople-4"),
    _falls_with_order("jf17k-3", "JF17K-3, d = 64"),
    Claim(
        "WN18: GETD is second best, 0.005 below TuckER",
        "less than 0.0055 below TuckER, not above it, and above the five other models",
        tables.near_tucker(0.005),
    ),
    Claim(
        "FB15k: GETD is above all, by 0.03 MRR",
        "above TuckER by 0.025 or more, and above the five other models",
        tables.above_all_on_fb15k("mrr", 0.03, 0.005),
    ),
    Claim(
        "FB15k: GETD raises Hits@1 by 4 %",
        "above TuckER by 0.035 or more, and above the five other models",
        tables.above_all_on_fb15k("hits_at_1", 0.04, 0.005),
    ),
    Claim(
        "Binary data: 1.5 M numbers in the ring of GETD, 8 M in the core of TuckER",
        "at dimensions 200 and rank 50 TuckER learns exactly so many more numbers than GETD",
        tables.binary_parameters(8_000_000, 1_500_000),
    ),
    Claim(
        "WikiPeople-3: 28 s an epoch, an hour in all, 5 s to rank test (on a Titan XP)",
        "here no longer, on a CPU",
        tables.within_an_hour,
    ),
    Claim(
        "GETD, n-TuckER and n-CP are fully expressive, RAE and NaLP are not",
        "as proved in docs/maths.md and tested",
        tables.expressive_as_published,
    ),
    Claim(
        "GETD takes time linear in its sizes",
        "no row measures it",
        tables.not_measured(
            "benchmarks/results/scaling.json has how time grows with entities, facts and arity"
        ),
    ),
)

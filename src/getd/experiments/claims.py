"""The numeric claims of the paper's prose, checked against results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

Results = Sequence[Mapping[str, Any]]
SEEDS = 0.005  # a difference of MRR that another seed may make


@dataclass(frozen=True)
class Missing(Exception):
    """A result that a claim needs is not there."""

    row: str


class Found:
    """Results by row."""

    def __init__(self, results: Results) -> None:
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        for result in results:
            self._rows.setdefault(result["row"], []).append(result)

    def metric(self, row: str, key: str = "mrr") -> float:
        """The mean over seeds."""
        return float(mean(result["metrics"][key] for result in self._of(row)))

    def curve(self, row: str, series: str, key: str) -> list[float]:
        """A curve by epoch."""
        return next(list(result["curves"][key]) for result in self._of(row) if result["series"] == series)

    def parameters(self, row: str, series: str, x: float | None = None) -> int:
        """How many numbers a point's model learns."""
        rows = [r for r in self._of(row) if r["series"] == series and (x is None or r["x"] == x)]
        if not rows:
            raise Missing(row)
        return int(rows[0]["parameters"])

    def points(self, row: str, series: str) -> dict[float, float]:
        """The MRR by what the axis shows."""
        found: dict[float, list[float]] = {}
        for result in self._of(row):
            if result["series"] == series:
                found.setdefault(result["x"], []).append(result["metrics"]["mrr"])
        if not found:
            raise Missing(row)
        return {x: mean(values) for x, values in sorted(found.items())}

    def _of(self, row: str) -> list[Mapping[str, Any]]:
        if row not in self._rows:
            raise Missing(row)
        return self._rows[row]


Check = Callable[[Found], tuple[bool, str]]  # whether it holds, and the figures


def check_claims(results: Results) -> list[dict[str, Any]]:
    """Each claim with what was found: shown, refuted, or not run for want of a row."""
    found, told = Found(results), []
    for claim, check in CLAIMS.items():
        try:
            holds, figures = check(found)
            told.append({"claim": claim, "verdict": "shown" if holds else "refuted", "figures": figures})
        except Missing as missing:
            told.append({"claim": claim, "verdict": "not run", "figures": f"needs {missing.row}"})
    return told


def _above_nalp(data: str, gain: float, hits: float) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        ours, theirs = f"paper/getd-{data}", f"paper/nalp-{data}"
        difference = found.metric(ours) - found.metric(theirs)
        ratio = found.metric(ours, "hits_at_1") / found.metric(theirs, "hits_at_1") - 1
        return difference >= gain - 0.005 and ratio >= hits - 0.005, f"MRR {difference:+.3f}, Hits@1 {ratio:+.0%}"

    return check


def _order(data: str) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        getd, tucker, cp = (found.metric(f"paper/{model}-{data}") for model in ("getd", "n-tucker", "n-cp"))
        return getd >= tucker >= cp, f"{getd:.3f}, {tucker:.3f}, {cp:.3f}"

    return check


def _overfits(row: str) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        """The test loss of n-TuckER rises from its lowest point, that of the others does not (by a tenth)."""
        rise, told = {}, []
        for series in ("GETD", "n-TuckER", "n-CP"):
            curve, mrr = (found.curve(row, series, key) for key in ("test_loss", "test_mrr"))
            lowest = min(range(len(curve)), key=curve.__getitem__)
            rise[series] = curve[-1] / curve[lowest] - 1
            told.append(
                f"{series} {rise[series]:+.0%} after its lowest at epoch {lowest + 1}, MRR {mrr[-1] - max(mrr):+.3f}"
            )
        return rise["n-TuckER"] > 0.1 and max(rise["GETD"], rise["n-CP"]) < 0.1, "; ".join(told)

    return check


def _sizes(found: Found) -> tuple[bool, str]:
    row = "figures/overfitting-wikipeople-4"
    counted = {series: found.parameters(row, series) / 1e6 for series in ("GETD", "n-CP", "n-TuckER")}
    wanted = {"GETD": 0.4, "n-CP": 0.9, "n-TuckER": 10}
    figures = ", ".join(f"{series} {value:.2f} M" for series, value in counted.items())
    return all(abs(counted[series] / wanted[series] - 1) < 0.15 for series in wanted), figures


def _synthetic(arity: int) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        row = f"figures/synthetic10-{arity}"
        tucker, ring = found.points(row, "n-TuckER"), found.points(row, "GETD, rank 1")
        falls, holds = (list(curve.values()) for curve in (tucker, ring))
        figures = f"n-TuckER {falls[0]:.3f} … {falls[-1]:.3f}, GETD {holds[0]:.3f} … {holds[-1]:.3f}"
        return falls[-1] < max(falls) - 0.05 and holds[-1] > falls[-1], figures

    return check


def _small_ring(found: Found) -> tuple[bool, str]:
    row = "figures/embedding-size-wikipeople-4"
    ring, tucker = (found.points(row, series) for series in ("GETD", "n-TuckER"))
    beyond = {size: value for size, value in tucker.items() if size >= 30}
    if not beyond or 15 not in ring:
        raise Missing(row)
    figures = ", ".join(f"at {size:g} {value:.3f}" for size, value in beyond.items())
    return ring[15] > max(beyond.values()), f"GETD at 15 {ring[15]:.3f}; n-TuckER {figures}"


def _large(other: str, gain: float) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        """GETD at size 35 is above another by so much, or nearly."""
        row = "figures/embedding-size-wikipeople-4"
        ring, theirs = (found.points(row, series) for series in ("GETD", other))
        if 35 not in ring or 35 not in theirs:
            raise Missing(row)
        ratio = ring[35] / theirs[35] - 1
        return ratio > 0.8 * gain, f"GETD {ring[35]:.3f}, {other} {theirs[35]:.3f}: {ratio:+.1%}"

    return check


def _sizes_at_30(found: Found) -> tuple[bool, str]:
    row, wanted = "figures/embedding-size-wikipeople-4", {"GETD": 0.42, "n-CP": 1.14, "n-TuckER": 24}
    counted = {series: found.parameters(row, series, 30) / 1e6 for series in wanted}
    figures = ", ".join(f"{series} {value:.2f} M" for series, value in counted.items())
    return all(abs(counted[series] / wanted[series] - 1) < 0.05 for series in wanted), figures


def _ranks(data: str, start: float) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        curve = found.points(f"figures/rank-{data}", "GETD")
        flat = [value for rank, value in curve.items() if rank >= start]
        low = min(curve.values())
        spread = max(flat) - min(flat)
        return spread < 0.02, f"from {start:g} on {min(flat):.3f} to {max(flat):.3f}; lowest of all {low:.3f}"

    return check


def _orders(data: str) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        curve = found.points(f"figures/order-{data}", "GETD")
        values = list(curve.values())
        figures = ", ".join(f"k = {order:g}: {value:.3f}" for order, value in curve.items())
        return values[0] >= max(values) - SEEDS and values[-1] < values[0] - SEEDS, figures

    return check


def _above_reference(found: Found) -> tuple[bool, str]:
    curve = found.points("figures/order-wikipeople-4", "GETD")
    reference = found.metric("paper/n-tucker-wikipeople-4")
    best = max(curve.values()) - reference
    return min(curve.values()) > reference, f"n-TuckER {reference:.3f}; best order {best:+.3f}"


def _binary(data: str, least: float) -> Check:
    def check(found: Found) -> tuple[bool, str]:
        ring, tucker = found.metric(f"best/getd-{data}"), found.metric(f"best/tucker-{data}")
        return ring - tucker >= least, f"GETD {ring:.3f}, TuckER {tucker:.3f}"

    return check


CLAIMS: dict[str, Check] = {
    "GETD is above NaLP on JF17K-3 by 0.22 MRR and 55 % of Hits@1": _above_nalp("jf17k-3", 0.22, 0.55),
    "GETD is above NaLP on JF17K-4 by 0.09 MRR and 12 % of Hits@1": _above_nalp("jf17k-4", 0.09, 0.12),
    "GETD is above NaLP on WikiPeople-3 by 0.07 MRR and 25 % of Hits@1": _above_nalp("wikipeople-3", 0.07, 0.25),
    "GETD is above NaLP on WikiPeople-4 by 0.04 MRR and 12 % of Hits@1": _above_nalp("wikipeople-4", 0.04, 0.12),
    "GETD ≥ n-TuckER ≥ n-CP on WikiPeople-3": _order("wikipeople-3"),
    "GETD ≥ n-TuckER ≥ n-CP on WikiPeople-4": _order("wikipeople-4"),
    "GETD ≥ n-TuckER ≥ n-CP on JF17K-3": _order("jf17k-3"),
    "GETD ≥ n-TuckER ≥ n-CP on JF17K-4": _order("jf17k-4"),
    "WikiPeople-4, no early stopping: the test loss of n-TuckER rises, those of GETD and n-CP do not": (
        _overfits("figures/overfitting-wikipeople-4")
    ),
    "The same without dropout": _overfits("figures/overfitting-no-dropout-wikipeople-4"),
    "WikiPeople-4: 0.4 M parameters (GETD), 0.9 M (n-CP), 10 M (n-TuckER)": _sizes,
    "Synthetic10-3: n-TuckER falls as embeddings grow, GETD with rank 1 holds": _synthetic(3),
    "Synthetic10-4: n-TuckER falls as embeddings grow, GETD with rank 1 holds": _synthetic(4),
    "WikiPeople-4: GETD at size 15 is above n-TuckER beyond 30": _small_ring,
    "WikiPeople-4: GETD at size 35 is 49 % above n-CP": _large("n-CP", 0.49),
    "WikiPeople-4: GETD at size 35 is 2.8 % above n-TuckER": _large("n-TuckER", 0.028),
    "WikiPeople-4, size 30: 0.42 M parameters (GETD), 1.14 M (n-CP), 24 M (n-TuckER)": _sizes_at_30,
    "WikiPeople-4 is flat in the TR rank from about 20 on": _ranks("wikipeople-4", 20),
    "JF17K-3 is flat in the TR rank from 20 to 60": _ranks("jf17k-3", 20),
    "WikiPeople-4: every order k is above n-TuckER, the best by 0.024 at k = 5": _above_reference,
    "WikiPeople-4: MRR is highest at the least order k and falls": _orders("wikipeople-4"),
    "JF17K-3, d = 64: MRR is highest at the least order k and falls": _orders("jf17k-3"),
    "WN18: GETD within 0.005 of TuckER": _binary("wn18", -0.0055),
    "FB15k: GETD above TuckER by 0.03": _binary("fb15k", 0.025),
}

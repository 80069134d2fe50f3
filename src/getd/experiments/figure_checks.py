"""Checks of what the paper says about its figures: overfitting, sizes, ranks, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean

from getd.experiments.findings import Findings, NotMeasured
from getd.experiments.table_checks import ROUNDED, Check, Verdict

SERIES = ("GETD", "n-TuckER", "n-CP")
SEEDS = 0.005  # a difference of MRR that another seed may make
OVERFITS = 0.1  # a share of the loss, or of the MRR
FLAT = 0.02  # MRR
FALLS = 0.05  # MRR
SIZES = "figures/embedding-size-wikipeople-4"
ALL_SIZES = (10, 15, 20, 25, 30, 35)
SHAPES: Mapping[
    str, Mapping[int, Sequence[int]]
] = {  # as the paper names them, with its slip at order 8 put right
    "wikipeople-4": {5: [25] * 5, 6: [5, 25, 25, 25, 25, 5]},
    "jf17k-3": {4: [64] * 4, 6: [16] * 6, 8: [8] * 8, 12: [4] * 12},
}


def loss_rises(row: str) -> Check:
    """The test loss of n-TuckER ends a tenth above its lowest point or more, those of the others do not."""

    def check(findings: Findings) -> Verdict:
        rise, figures = {}, []
        for series in SERIES:
            loss = findings.curve(row, series, "test_loss")
            lowest = min(range(len(loss)), key=loss.__getitem__)
            rise[series] = loss[-1] / loss[lowest] - 1
            figures.append(f"{series} {rise[series]:+.0%} after its lowest at epoch {lowest + 1}")
        return _tucker_alone(rise), "; ".join(figures)

    return check


def mrr_falls(row: str) -> Check:
    """The MRR of n-TuckER ends a tenth below its highest point or more, those of the others do not."""

    def check(findings: Findings) -> Verdict:
        fall, figures = {}, []
        for series in SERIES:
            mrr = findings.curve(row, series, "test_mrr")
            fall[series] = 1 - mrr[-1] / max(mrr)
            figures.append(f"{series} {max(mrr):.3f} at its best, {mrr[-1]:.3f} in the end")
        return _tucker_alone(fall), "; ".join(figures)

    return check


def loss_turns_at(row: str, epoch: int, around: int) -> Check:
    """The test loss of n-TuckER has its lowest point near an epoch, and ends higher."""

    def check(findings: Findings) -> Verdict:
        loss = findings.curve(row, "n-TuckER", "test_loss")
        lowest = min(range(len(loss)), key=loss.__getitem__)
        rise = loss[-1] / loss[lowest] - 1
        return abs(
            lowest + 1 - epoch
        ) <= around and rise > 0, f"lowest at epoch {lowest + 1}, {rise:+.0%} in the end"

    return check


def train_losses_fall(row: str, epochs: int) -> Check:
    """The mean training loss of so many epochs is below that of as many before, always and for all models."""

    def check(findings: Findings) -> Verdict:
        rising = []
        for series in SERIES:
            loss = findings.curve(row, series, "train_loss")
            means = [mean(loss[start : start + epochs]) for start in range(0, len(loss), epochs)]
            rising += [series] if any(after >= before for before, after in pairwise(means)) else []
        return (
            not rising,
            f"{' and '.join(rising)} rise in between" if rising else "all three fall throughout",
        )

    return check


def ends_above(row: str, better: str, worse: str) -> Check:
    """One model has the higher test MRR after the last epoch."""

    def check(findings: Findings) -> Verdict:
        first, second = (findings.curve(row, series, "test_mrr")[-1] for series in (better, worse))
        return first > second, f"{better} {first:.3f}, {worse} {second:.3f}"

    return check


def parameters_are(row: str, wanted: Mapping[str, str], x: float | None = None) -> Check:
    """Millions of parameters, cut (not rounded) to the digits that the paper gives, are those of the paper."""

    def check(findings: Findings) -> Verdict:
        counted = {series: findings.parameters(row, series, x) for series in wanted}
        figures = ", ".join(f"{series} {number / 1e6:.3f} M" for series, number in counted.items())
        return all(_cut(counted[series], text) == text for series, text in wanted.items()), figures

    return check


def parameter_share(row: str, x: float, percent: float) -> Check:
    """GETD has this share of n-TuckER's parameters, rounded to a tenth of a percent."""

    def check(findings: Findings) -> Verdict:
        ring, tucker = (findings.parameters(row, series, x) for series in ("GETD", "n-TuckER"))
        return round(100 * ring / tucker, 1) == percent, f"{ring / tucker:.1%}"

    return check


def core_against_ring(row: str, ring: str, x: float, sizes: tuple[int, int]) -> Check:
    """n-TuckER learns as many more numbers than GETD as its core has more than the ring; the rest is the same."""

    def check(findings: Findings) -> Verdict:
        tucker, getd = (findings.parameters(row, series, x) for series in ("n-TuckER", ring))
        return tucker - getd == sizes[0] - sizes[1], f"n-TuckER {tucker:,} in all, GETD {getd:,}"

    return check


def tucker_falls(arity: int) -> Check:
    """n-TuckER ends well below its smallest size, and is nowhere well above it."""

    def check(findings: Findings) -> Verdict:
        curve = findings.line(f"figures/synthetic10-{arity}", "n-TuckER")
        chance = findings.chance(f"Synthetic10-{arity}")
        figures = _values(curve) + ("" if chance is None else f"; random order {chance:.3f}")
        return curve[-1] < curve[0] - FALLS and max(curve) <= curve[0] + FALLS, figures

    return check


def ring_holds(arity: int) -> Check:
    """GETD with rank 1 is at no size well below its best."""

    def check(findings: Findings) -> Verdict:
        curve = findings.line(f"figures/synthetic10-{arity}", "GETD, rank 1")
        return min(curve) >= max(curve) - FALLS, _values(curve)

    return check


def always_above(findings: Findings) -> Verdict:
    """GETD is above n-TuckER and n-CP at every size."""
    curves = {series: findings.points(SIZES, series) for series in SERIES}
    ring, wrong = curves["GETD"], []
    for series in SERIES[1:]:
        for size in sorted(ring.keys() & curves[series].keys()):
            if ring[size] <= curves[series][size]:
                wrong.append(f"at {size:g} {ring[size]:.3f}, {series} {curves[series][size]:.3f}")
    missing = [
        f"{series} at {size}"
        for series in SERIES
        for size in ALL_SIZES
        if size not in curves[series]
    ]
    if missing and not wrong:
        raise NotMeasured(f"needs {SIZES}, {', '.join(missing)}")
    return not wrong, "; ".join(wrong) or "at all of them"


def rises_and_flattens(findings: Findings) -> Verdict:
    """GETD loses no more than a seed makes from one size to the next, and the last step is smaller than the first."""
    curve = findings.line(SIZES, "GETD")
    steps = [after - before for before, after in pairwise(curve)]
    return min(steps) >= -SEEDS and steps[-1] < steps[0], _values(curve)


def tucker_is_unstable(findings: Findings) -> Verdict:
    """n-TuckER loses more than a seed makes from one size to the next."""
    curve = findings.line(SIZES, "n-TuckER")
    return any(after < before - SEEDS for before, after in pairwise(curve)), _values(curve)


def above_at(size: int, other: str, gain: float, rounded: float) -> Check:
    """GETD is above another model by at least a share at one size."""

    def check(findings: Findings) -> Verdict:
        ring, theirs = (findings.point(SIZES, series, size) for series in ("GETD", other))
        ratio = ring / theirs - 1
        return ratio >= gain - rounded, f"GETD {ring:.3f}, {other} {theirs:.3f}: {ratio:+.1%}"

    return check


def reaches(size: int, mrr: float) -> Check:
    """GETD has this MRR at a size, or is below it by no more than a seed makes."""

    def check(findings: Findings) -> Verdict:
        found = findings.point(SIZES, "GETD", size)
        return found >= mrr - SEEDS, f"{found:.3f}"

    return check


def small_above_large(small: int, beyond: int) -> Check:
    """GETD at a small size is above n-TuckER at every size over another."""

    def check(findings: Findings) -> Verdict:
        ring, tucker = findings.point(SIZES, "GETD", small), findings.points(SIZES, "n-TuckER")
        larger = {size: mrr for size, mrr in tucker.items() if size > beyond}
        if not larger:
            at = (
                f"GETD at {small} {ring:.3f}, n-TuckER at {max(tucker):g} {tucker[max(tucker)]:.3f}"
            )
            raise NotMeasured(f"needs {SIZES}, n-TuckER over {beyond}; {at}")
        figures = ", ".join(f"at {size:g} {mrr:.3f}" for size, mrr in larger.items())
        return ring > max(larger.values()), f"GETD at {small} {ring:.3f}; n-TuckER {figures}"

    return check


def least_parameters(findings: Findings) -> Verdict:
    """GETD learns the fewest numbers of the three at every size that was measured."""
    ring = {
        size: findings.parameters(SIZES, "GETD", size) for size in findings.points(SIZES, "GETD")
    }
    wrong = [
        f"{series} at {size:g}"
        for series in SERIES[1:]
        for size in findings.points(SIZES, series)
        if size in ring and findings.parameters(SIZES, series, size) <= ring[size]
    ]
    return not wrong, f"not against {', '.join(wrong)}" if wrong else "at all of them"


def flat(data: str, low: float, high: float) -> Check:
    """The MRR differs by less than a bound between two ranks."""

    def check(findings: Findings) -> Verdict:
        curve = findings.points(f"figures/rank-{data}", "GETD")
        values = [mrr for rank, mrr in curve.items() if low <= rank <= high]
        if len(values) < 2:
            raise NotMeasured(f"needs figures/rank-{data}, ranks from {low:g} to {high:g}")
        return max(values) - min(values) < FLAT, f"{min(values):.3f} to {max(values):.3f}"

    return check


def only_ranks_below_hurt(data: str, bound: float) -> Check:
    """Every rank from a bound on is within a bound of the best, and every smaller one is not."""

    def check(findings: Findings) -> Verdict:
        curve = findings.points(f"figures/rank-{data}", "GETD")
        hurt = [rank for rank, mrr in curve.items() if mrr < max(curve.values()) - FLAT]
        figures = ", ".join(f"rank {rank:g}: {mrr:.3f}" for rank, mrr in curve.items())
        return hurt == [rank for rank in curve if rank < bound], figures

    return check


def orders_above_tucker(data: str) -> Check:
    """Every order is above n-TuckER."""

    def check(findings: Findings) -> Verdict:
        reference = findings.metric(f"paper/n-tucker-{data}")
        curve = _orders(findings, data)
        return min(curve.values()) > reference, f"n-TuckER {reference:.3f}; {_by_order(curve)}"

    return check


def least_order_is_best(data: str, gain: float) -> Check:
    """The least order has the highest MRR, above n-TuckER by so much."""

    def check(findings: Findings) -> Verdict:
        reference = findings.metric(f"paper/n-tucker-{data}")
        curve = _orders(findings, data)
        least = curve[min(curve)]
        figures = f"n-TuckER {reference:.3f}; {_by_order(curve)}"
        return least == max(curve.values()) and least - reference >= gain - ROUNDED / 10, figures

    return check


def falls_with_order(data: str) -> Check:
    """The MRR is highest at the least order, never rises by more than a seed makes, and ends lower than that."""

    def check(findings: Findings) -> Verdict:
        curve = _orders(findings, data)
        values = list(curve.values())
        steps = [after - before for before, after in pairwise(values)]
        falls = values[0] == max(values) and max(steps) <= SEEDS and values[-1] < values[0] - SEEDS
        return falls, _by_order(curve)

    return check


def _orders(findings: Findings, data: str) -> dict[int, float]:
    """The MRR by order at the paper's shapes, all of which must be there."""
    rows, shapes = [f"figures/order-{data}", f"figures/order-paper-{data}"], SHAPES[data]
    findings.results(rows[0])
    curve = findings.by_shape(rows, shapes)
    missing = ["·".join(map(str, shape)) for order, shape in shapes.items() if order not in curve]
    if missing:
        raise NotMeasured(
            f"not at the paper's shapes: {', '.join(missing)} not run; measured: {_by_order(curve)}"
        )
    return curve


def _by_order(curve: Mapping[int, float]) -> str:
    return ", ".join(f"k = {order}: {mrr:.3f}" for order, mrr in curve.items())


def _tucker_alone(worse: Mapping[str, float]) -> bool:
    return worse["n-TuckER"] > OVERFITS and max(worse["GETD"], worse["n-CP"]) < OVERFITS


def _cut(number: int, wanted: str) -> str:
    """Millions with as many digits as are wanted, cut off.

    >>> _cut(954_550, "0.9"), _cut(24_588_000, "24")
    ('0.9', '24')
    """
    digits = len(wanted.partition(".")[2])
    whole, rest = divmod(number * 10**digits // 10**6, 10**digits)
    return f"{whole}.{rest:0{digits}}" if digits else str(whole)


def _values(curve: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in curve)

"""Checks of what the paper says about its figures: overfitting, sizes, ranks, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean

from getd.experiments.result_index import NotMeasured, ResultIndex
from getd.experiments.table_checks import ROUNDED, Verdict

SERIES = ("GETD", "n-TuckER", "n-CP")
SEED_NOISE = 0.005  # a difference of MRR that another seed may make
OVERFITTING = 0.1  # a share of the loss, or of the MRR
FLAT = 0.02  # MRR
FALL = 0.05  # MRR
SIZES = "figures/embedding-size-wikipeople-4"
ALL_SIZES = (10, 15, 20, 25, 30, 35)
SHAPES: Mapping[str, Mapping[int, Sequence[int]]] = {  # the paper's, its slip at order 8 corrected
    "wikipeople-4": {5: [25] * 5, 6: [5, 25, 25, 25, 25, 5]},
    "jf17k-3": {4: [64] * 4, 6: [16] * 6, 8: [8] * 8, 12: [4] * 12},
}


def loss_rises(results: ResultIndex, row: str) -> Verdict:
    """Only the test loss of n-TuckER ends a tenth or more above its lowest point."""
    rises = {}
    figures = []
    for series in SERIES:
        loss = results.curve(row, series, "test_loss")
        lowest = loss.index(min(loss))
        rises[series] = loss[-1] / loss[lowest] - 1
        figures.append(f"{series} {rises[series]:+.0%} after its lowest at epoch {lowest + 1}")
    return _only_tucker(rises), "; ".join(figures)


def mrr_falls(results: ResultIndex, row: str) -> Verdict:
    """Only the MRR of n-TuckER ends a tenth or more below its highest point."""
    falls = {}
    figures = []
    for series in SERIES:
        mrr = results.curve(row, series, "test_mrr")
        falls[series] = 1 - mrr[-1] / max(mrr)
        figures.append(f"{series} {max(mrr):.3f} at its best, {mrr[-1]:.3f} in the end")
    return _only_tucker(falls), "; ".join(figures)


def loss_turns_at(results: ResultIndex, row: str, epoch: int, around: int) -> Verdict:
    """The test loss of n-TuckER has its lowest point near an epoch, and ends higher."""
    loss = results.curve(row, "n-TuckER", "test_loss")
    lowest = loss.index(min(loss))
    rise = loss[-1] / loss[lowest] - 1
    is_near = abs(lowest + 1 - epoch) <= around
    return is_near and rise > 0, f"lowest at epoch {lowest + 1}, {rise:+.0%} in the end"


def train_losses_fall(results: ResultIndex, row: str, epochs: int) -> Verdict:
    """The mean training loss of every ``epochs`` epochs is below that of those before."""
    rising = []
    for series in SERIES:
        loss = results.curve(row, series, "train_loss")
        means = [mean(loss[start : start + epochs]) for start in range(0, len(loss), epochs)]
        if any(after >= before for before, after in pairwise(means)):
            rising.append(series)
    if rising:
        return False, f"{' and '.join(rising)} rise in between"
    return True, "all three fall throughout"


def ends_above(results: ResultIndex, row: str, better: str, worse: str) -> Verdict:
    """One model has the higher test MRR after the last epoch."""
    first = results.curve(row, better, "test_mrr")[-1]
    second = results.curve(row, worse, "test_mrr")[-1]
    return first > second, f"{better} {first:.3f}, {worse} {second:.3f}"


def parameters_are(
    results: ResultIndex, row: str, published: Mapping[str, str], x: float | None = None
) -> Verdict:
    """Millions of parameters, cut (not rounded) to the paper's digits, are those of the paper."""
    holds = True
    figures = []
    for series, text in published.items():
        number = results.parameters(row, series, x)
        holds = holds and _cut(number, text) == text
        figures.append(f"{series} {number / 1e6:.3f} M")
    return holds, ", ".join(figures)


def parameter_share(results: ResultIndex, row: str, x: float, percent: float) -> Verdict:
    """GETD has this share of n-TuckER's parameters, rounded to a tenth of a percent."""
    ring = results.parameters(row, "GETD", x)
    tucker = results.parameters(row, "n-TuckER", x)
    return round(100 * ring / tucker, 1) == percent, f"{ring / tucker:.1%}"


def core_against_ring(
    results: ResultIndex, row: str, ring: str, x: float, sizes: tuple[int, int]
) -> Verdict:
    """n-TuckER learns as many more numbers than GETD as its core has more than the ring."""
    tucker = results.parameters(row, "n-TuckER", x)
    getd = results.parameters(row, ring, x)
    return tucker - getd == sizes[0] - sizes[1], f"n-TuckER {tucker:,} in all, GETD {getd:,}"


def tucker_falls(results: ResultIndex, arity: int) -> Verdict:
    """n-TuckER ends well below its smallest size, and is nowhere well above it."""
    curve = results.line(f"figures/synthetic10-{arity}", "n-TuckER")
    chance = results.chance(f"Synthetic10-{arity}")
    figures = _values(curve)
    if chance is not None:
        figures += f"; random order {chance:.3f}"
    return curve[-1] < curve[0] - FALL and max(curve) <= curve[0] + FALL, figures


def ring_holds(results: ResultIndex, arity: int) -> Verdict:
    """GETD with rank 1 is at no size well below its best."""
    curve = results.line(f"figures/synthetic10-{arity}", "GETD, rank 1")
    return min(curve) >= max(curve) - FALL, _values(curve)


def always_above(results: ResultIndex) -> Verdict:
    """GETD is above n-TuckER and n-CP at every size."""
    curves = {series: results.points(SIZES, series) for series in SERIES}
    ring = curves["GETD"]
    wrong = []
    for series in SERIES[1:]:
        for size in sorted(ring.keys() & curves[series].keys()):
            other = curves[series][size]
            if ring[size] <= other:
                wrong.append(f"at {size:g} {ring[size]:.3f}, {series} {other:.3f}")

    missing = []
    for series, curve in curves.items():
        missing += [f"{series} at {size}" for size in ALL_SIZES if size not in curve]
    if missing and not wrong:
        raise NotMeasured(f"needs {SIZES}, {', '.join(missing)}")
    return not wrong, "; ".join(wrong) or "at all of them"


def rises_and_flattens(results: ResultIndex) -> Verdict:
    """GETD never falls by more than the noise of a seed, and its last step is below its first."""
    curve = results.line(SIZES, "GETD")
    steps = [after - before for before, after in pairwise(curve)]
    return min(steps) >= -SEED_NOISE and steps[-1] < steps[0], _values(curve)


def tucker_is_unstable(results: ResultIndex) -> Verdict:
    """n-TuckER falls from one size to the next by more than the noise of a seed."""
    curve = results.line(SIZES, "n-TuckER")
    return any(after < before - SEED_NOISE for before, after in pairwise(curve)), _values(curve)


def above_at(results: ResultIndex, size: int, other: str, gain: float, rounded: float) -> Verdict:
    """GETD is above another model by at least a share at one size."""
    ring = results.point(SIZES, "GETD", size)
    theirs = results.point(SIZES, other, size)
    ratio = ring / theirs - 1
    return ratio >= gain - rounded, f"GETD {ring:.3f}, {other} {theirs:.3f}: {ratio:+.1%}"


def reaches(results: ResultIndex, size: int, mrr: float) -> Verdict:
    """GETD has this MRR at a size, up to the noise of a seed."""
    measured = results.point(SIZES, "GETD", size)
    return measured >= mrr - SEED_NOISE, f"{measured:.3f}"


def small_above_large(results: ResultIndex, small: int, beyond: int) -> Verdict:
    """GETD at a small size is above n-TuckER at every size over another."""
    ring = results.point(SIZES, "GETD", small)
    tucker = results.points(SIZES, "n-TuckER")
    ours = f"GETD at {small} {ring:.3f}"

    larger = {size: mrr for size, mrr in tucker.items() if size > beyond}
    if not larger:
        theirs = f"n-TuckER at {max(tucker):g} {tucker[max(tucker)]:.3f}"
        raise NotMeasured(f"needs {SIZES}, n-TuckER over {beyond}; {ours}, {theirs}")
    figures = ", ".join(f"at {size:g} {mrr:.3f}" for size, mrr in larger.items())
    return ring > max(larger.values()), f"{ours}; n-TuckER {figures}"


def least_parameters(results: ResultIndex) -> Verdict:
    """GETD learns the fewest numbers of the three at every size that was measured."""
    sizes = results.points(SIZES, "GETD")
    wrong = []
    for series in SERIES[1:]:
        for size in results.points(SIZES, series):
            if size in sizes:
                ring = results.parameters(SIZES, "GETD", size)
                if results.parameters(SIZES, series, size) <= ring:
                    wrong.append(f"{series} at {size:g}")
    return not wrong, f"not against {', '.join(wrong)}" if wrong else "at all of them"


def flat(results: ResultIndex, data: str, low: float, high: float) -> Verdict:
    """The MRR differs by less than a bound between two ranks."""
    row = f"figures/rank-{data}"
    values = [mrr for rank, mrr in results.points(row, "GETD").items() if low <= rank <= high]
    if len(values) < 2:
        raise NotMeasured(f"needs {row}, ranks from {low:g} to {high:g}")
    return max(values) - min(values) < FLAT, f"{min(values):.3f} to {max(values):.3f}"


def only_ranks_below_hurt(results: ResultIndex, data: str, bound: float) -> Verdict:
    """Every rank from a bound on is near the best, and every smaller one is not."""
    curve = results.points(f"figures/rank-{data}", "GETD")
    best = max(curve.values())
    hurt = [rank for rank, mrr in curve.items() if mrr < best - FLAT]
    figures = ", ".join(f"rank {rank:g}: {mrr:.3f}" for rank, mrr in curve.items())
    return hurt == [rank for rank in curve if rank < bound], figures


def orders_above_tucker(results: ResultIndex, data: str) -> Verdict:
    """Every order is above n-TuckER."""
    reference = results.metric(f"paper/n-tucker-{data}")
    curve = _orders(results, data)
    return min(curve.values()) > reference, f"n-TuckER {reference:.3f}; {_by_order(curve)}"


def least_order_is_best(results: ResultIndex, data: str, gain: float) -> Verdict:
    """The least order has the highest MRR, above n-TuckER by this much."""
    reference = results.metric(f"paper/n-tucker-{data}")
    curve = _orders(results, data)
    least = curve[min(curve)]
    figures = f"n-TuckER {reference:.3f}; {_by_order(curve)}"
    return least == max(curve.values()) and least - reference >= gain - ROUNDED / 10, figures


def falls_with_order(results: ResultIndex, data: str) -> Verdict:
    """The MRR is highest at the least order, never rises beyond the noise, and ends lower."""
    curve = _orders(results, data)
    values = list(curve.values())
    steps = [after - before for before, after in pairwise(values)]
    starts_highest = values[0] == max(values)
    ends_lower = values[-1] < values[0] - SEED_NOISE
    return starts_highest and max(steps) <= SEED_NOISE and ends_lower, _by_order(curve)


def _orders(results: ResultIndex, data: str) -> dict[float, float]:
    """Return the MRR by order at the paper's shapes, all of which must be measured."""
    rows = [f"figures/order-{data}", f"figures/order-paper-{data}"]
    results.require(rows[0])
    shapes = SHAPES[data]
    curve = results.by_shape(rows, shapes)

    missing = ["·".join(map(str, shape)) for order, shape in shapes.items() if order not in curve]
    if missing:
        absent = f"not at the paper's shapes: {', '.join(missing)} not run"
        raise NotMeasured(f"{absent}; measured: {_by_order(curve)}")
    return curve


def _by_order(curve: Mapping[float, float]) -> str:
    return ", ".join(f"k = {order}: {mrr:.3f}" for order, mrr in curve.items())


def _only_tucker(worse: Mapping[str, float]) -> bool:
    return worse["n-TuckER"] > OVERFITTING and max(worse["GETD"], worse["n-CP"]) < OVERFITTING


def _cut(number: int, pattern: str) -> str:
    """Write a number in millions with as many digits as the pattern, cut off.

    >>> _cut(954_550, "0.9"), _cut(24_588_000, "24")
    ('0.9', '24')
    """
    digits = len(pattern.partition(".")[2])
    whole, rest = divmod(number * 10**digits // 10**6, 10**digits)
    return f"{whole}.{rest:0{digits}}" if digits else str(whole)


def _values(curve: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in curve)

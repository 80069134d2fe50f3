"""Checks of what the paper says about its figures: overfitting, sizes, ranks, orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from itertools import pairwise
from math import inf
from statistics import mean

from getd.experiments.result import Measurement
from getd.experiments.result_index import MeansByX, NotMeasured, ResultIndex, mean_by_x
from getd.experiments.table_checks import ROUNDED, Verdict
from getd.experiments.text import listed

SERIES = ("GETD", "n-TuckER", "n-CP")
SEED_NOISE = 0.005  # a difference of MRR that another seed may make
OVERFITTING = 0.1  # a share of the loss, or of the MRR
FLAT = 0.02  # MRR
FALL = 0.05  # MRR
SIZES = "figures/embedding-size-wikipeople-4"
ALL_SIZES = (10, 15, 20, 25, 30, 35)
SHAPES = {  # the paper's, its slip at order 8 corrected
    "wikipeople-4": ([25] * 5, [5, 25, 25, 25, 25, 5]),
    "jf17k-3": ([64] * 4, [16] * 6, [8] * 8, [4] * 12),
}


@dataclass(frozen=True)
class Turn:
    """The best point of a curve by epoch, and its last one."""

    epoch: int
    best: float
    last: float

    @property
    def worse(self) -> float:
        """How much worse the curve ends, as a share of its best point."""
        return abs(self.last / self.best - 1)


def only_tucker_overfits(results: ResultIndex, row: str, key: str) -> Verdict:
    """Only the curve of n-TuckER, test loss or MRR, ends a tenth or more worse than its best."""
    turns = {series: _turn(results, row, series, key) for series in SERIES}
    others = max(turns["GETD"].worse, turns["n-CP"].worse)
    return Verdict(turns["n-TuckER"].worse > OVERFITTING > others, **turns)


def loss_turns_at(results: ResultIndex, row: str, epoch: int, around: int) -> Verdict:
    """The test loss of n-TuckER has its lowest point near an epoch, and ends higher."""
    turn = _turn(results, row, "n-TuckER", "test_loss")
    holds = abs(turn.epoch - epoch) <= around and turn.worse > 0
    return Verdict(holds, turn=turn)


def train_losses_fall(results: ResultIndex, row: str, epochs: int) -> Verdict:
    """The mean training loss of every ``epochs`` epochs is below that of those before."""
    rising = []
    for series in SERIES:
        loss = results.curve(row, series, "train_loss")
        means = []
        for start in range(0, len(loss), epochs):
            means.append(mean(loss[start : start + epochs]))
        if any(step >= 0 for step in _steps(means)):
            rising.append(series)

    if not rising:
        return Verdict(True, exceptions="all three fall throughout")
    return Verdict(False, exceptions=f"{' and '.join(rising)} rise in between")


def ends_above_cp(results: ResultIndex, row: str) -> Verdict:
    """GETD has a higher test MRR than n-CP after the last epoch."""
    ring = results.curve(row, "GETD", "test_mrr")[-1]
    cp = results.curve(row, "n-CP", "test_mrr")[-1]
    return Verdict(ring > cp, ring=ring, cp=cp)


def parameters_are(
    results: ResultIndex, row: str, published: Mapping[str, str], x: float | None = None
) -> Verdict:
    """Millions of parameters, cut (not rounded) to the paper's digits, are those of the paper."""
    holds = True
    millions = {}
    for series, text in published.items():
        number = results.parameters(row, series, x)
        holds = holds and _cut(number, text) == text
        millions[series] = number / 1e6
    return Verdict(holds, **millions)


def parameter_share(results: ResultIndex, x: float, percent: float) -> Verdict:
    """GETD has this share of n-TuckER's parameters, rounded to a tenth of a percent."""
    ring = results.parameters(SIZES, "GETD", x)
    tucker = results.parameters(SIZES, "n-TuckER", x)
    return Verdict(round(100 * ring / tucker, 1) == percent, share=ring / tucker)


def core_against_ring(results: ResultIndex, row: str, x: int, core: int, ring: int) -> Verdict:
    """n-TuckER learns as many more numbers than GETD as its core has more than the ring."""
    tucker = results.parameters(row, "n-TuckER", x)
    getd = results.parameters(row, "GETD, rank 1", x)
    return Verdict(tucker - getd == core - ring, tucker=tucker, getd=getd)


def tucker_falls(results: ResultIndex, row: str, data: str) -> Verdict:
    """n-TuckER ends well below its smallest size, and is nowhere well above it."""
    curve = results.line(row, "n-TuckER")
    chance = results.chance(data)
    note = "" if chance is None else f"; random order {chance:.3f}"
    first = curve[0]
    holds = curve[-1] < first - FALL and max(curve) <= first + FALL
    return Verdict(holds, curve=listed("{:.3f}", curve), note=note)


def ring_holds(results: ResultIndex, row: str) -> Verdict:
    """GETD with rank 1 is at no size well below its best."""
    curve = results.line(row, "GETD, rank 1")
    return Verdict(min(curve) >= max(curve) - FALL, curve=listed("{:.3f}", curve))


def always_above(results: ResultIndex) -> Verdict:
    """GETD is above n-TuckER and n-CP at every size."""
    ring = results.points(SIZES, "GETD")
    missing = []
    wrong = []
    for series in SERIES:
        curve = results.points(SIZES, series)
        missing += [f"{series} at {size}" for size in ALL_SIZES if size not in curve]
        for size, mrr in curve.items():
            if series != "GETD" and ring.get(size, inf) <= mrr:
                wrong.append(f"at {size:g} {ring[size]:.3f}, {series} {mrr:.3f}")

    if missing and not wrong:
        raise NotMeasured(f"needs {SIZES}, {', '.join(missing)}")
    return Verdict(not wrong, exceptions="; ".join(wrong) or "at all of them")


def rises_and_flattens(results: ResultIndex) -> Verdict:
    """GETD never falls by more than the noise of a seed, and its last step is below its first."""
    curve = results.line(SIZES, "GETD")
    steps = _steps(curve)
    holds = min(steps) >= -SEED_NOISE and steps[-1] < steps[0]
    return Verdict(holds, curve=listed("{:.3f}", curve))


def tucker_is_unstable(results: ResultIndex) -> Verdict:
    """n-TuckER falls from one size to the next by more than the noise of a seed."""
    curve = results.line(SIZES, "n-TuckER")
    falls = [before - SEED_NOISE > after for before, after in pairwise(curve)]
    return Verdict(any(falls), curve=listed("{:.3f}", curve))


def above_at(results: ResultIndex, size: int, other: str, gain: float, rounded: float) -> Verdict:
    """GETD is above another model by at least a share at one size."""
    ring = results.point(SIZES, "GETD", size)
    theirs = results.point(SIZES, other, size)
    ratio = ring / theirs - 1
    return Verdict(ratio >= gain - rounded, ring=ring, theirs=theirs, ratio=ratio)


def reaches(results: ResultIndex, size: int, mrr: float) -> Verdict:
    """GETD has this MRR at a size, up to the noise of a seed."""
    measured = results.point(SIZES, "GETD", size)
    return Verdict(measured >= mrr - SEED_NOISE, mrr=measured)


def small_above_large(results: ResultIndex, small: int, beyond: int) -> Verdict:
    """GETD at a small size is above n-TuckER at every size over another."""
    ring = results.point(SIZES, "GETD", small)
    tucker = results.points(SIZES, "n-TuckER")
    ours = f"GETD at {small} {ring:.3f}"

    larger = {size: mrr for size, mrr in tucker.items() if size > beyond}
    if not larger:
        last = max(tucker)
        theirs = f"n-TuckER at {last:g} {tucker[last]:.3f}"
        raise NotMeasured(f"needs {SIZES}, n-TuckER over {beyond}; {ours}, {theirs}")
    theirs = listed("at {:g} {:.3f}", larger, larger.values())
    return Verdict(ring > max(larger.values()), ours=ours, theirs=theirs)


def least_parameters(results: ResultIndex) -> Verdict:
    """GETD learns the fewest numbers of the three at every size that was measured."""
    rings = {result.x: result.parameters for result in results.series(SIZES, "GETD")}
    wrong = []
    for series in SERIES[1:]:
        for size in results.points(SIZES, series):
            counted = results.parameters(SIZES, series, size)
            if size in rings and counted <= rings[size]:
                wrong.append(f"{series} at {size:g}")
    exceptions = f"not against {', '.join(wrong)}" if wrong else "at all of them"
    return Verdict(not wrong, exceptions=exceptions)


def flat(results: ResultIndex, row: str, low: float, high: float) -> Verdict:
    """The MRR differs by less than a bound between two ranks."""
    curve = results.points(row, "GETD")
    values = [mrr for rank, mrr in curve.items() if low <= rank <= high]
    if len(values) < 2:
        raise NotMeasured(f"needs {row}, ranks from {low:g} to {high:g}")
    lowest = min(values)
    highest = max(values)
    return Verdict(highest - lowest < FLAT, lowest=lowest, highest=highest)


def only_ranks_below_hurt(results: ResultIndex, row: str, bound: float) -> Verdict:
    """Every rank from a bound on is near the best, and every smaller one is not."""
    curve = results.points(row, "GETD")
    best = max(curve.values())
    hurt = [rank for rank, mrr in curve.items() if mrr < best - FLAT]
    smaller = [rank for rank in curve if rank < bound]
    return Verdict(hurt == smaller, by_rank=listed("rank {:g}: {:.3f}", curve, curve.values()))


def orders_above_tucker(results: ResultIndex, data: str) -> Verdict:
    """Every order is above n-TuckER."""
    tucker = results.paper_metric("n-tucker", data)
    curve = _orders(results, data)
    return Verdict(min(curve.values()) > tucker, tucker=tucker, by_order=_by_order(curve))


def least_order_is_best(results: ResultIndex, data: str, gain: float) -> Verdict:
    """The least order has the highest MRR, above n-TuckER by this much."""
    tucker = results.paper_metric("n-tucker", data)
    curve = _orders(results, data)
    least = curve[min(curve)]
    is_best = least == max(curve.values())
    is_above = least - tucker >= gain - ROUNDED / 10
    return Verdict(is_best and is_above, tucker=tucker, by_order=_by_order(curve))


def falls_with_order(results: ResultIndex, data: str) -> Verdict:
    """The MRR is highest at the least order, never rises beyond the noise, and ends lower."""
    curve = _orders(results, data)
    values = list(curve.values())
    first = values[0]
    ends_lower = values[-1] < first - SEED_NOISE
    holds = first == max(values) and max(_steps(values)) <= SEED_NOISE and ends_lower
    return Verdict(holds, by_order=_by_order(curve))


def _orders(results: ResultIndex, data: str) -> MeansByX:
    """Return the MRR by order at the paper's shapes, all of which must be measured."""
    measured = [*results.require(f"figures/order-{data}")]
    measured += results.find(f"figures/order-paper-{data}")
    shapes = SHAPES[data]
    curve = mean_by_x([result for result in measured if _ring_shape(result) in shapes], "mrr")

    missing = ["·".join(map(str, shape)) for shape in shapes if len(shape) not in curve]
    if missing:
        absent = f"not at the paper's shapes: {', '.join(missing)} not run"
        raise NotMeasured(f"{absent}; measured: {_by_order(curve)}")
    return curve


def _ring_shape(result: Measurement) -> list[int]:
    model = result.settings.model.model_dump()
    return list(model["ring_shape"] or [model["entity_dim"]] * int(result.x or 0))


def _by_order(curve: MeansByX) -> str:
    return listed("k = {}: {:.3f}", curve, curve.values())


def _turn(results: ResultIndex, row: str, series: str, key: str) -> Turn:
    curve = results.curve(row, series, key)
    best = min(curve) if key == "test_loss" else max(curve)
    return Turn(curve.index(best) + 1, best, curve[-1])


def _cut(number: int, pattern: str) -> str:
    """Write a number in millions with as many digits as the pattern, cut off.

    >>> _cut(954_550, "0.9"), _cut(24_588_000, "24")
    ('0.9', '24')
    """
    millions = Decimal(number) / 10**6
    return str(millions.quantize(Decimal(pattern), ROUND_DOWN))


def _steps(values: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(values)]

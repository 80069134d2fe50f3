"""Checks of what the paper says about its tables, with the settings of ``claims.toml``."""

from statistics import mean

from getd.experiments.result import Complexity, Cost
from getd.experiments.result_index import NotMeasured, ResultIndex
from getd.models.registry import MODELS

N_ARY = {
    "wikipeople-3": "WikiPeople-3",
    "wikipeople-4": "WikiPeople-4",
    "jf17k-3": "JF17K-3",
    "jf17k-4": "JF17K-4",
}
TENSOR_MODELS = ("getd", "n-tucker", "n-cp")
OTHER_MODELS = ("rae", "nalp")
BINARY_MODELS = ("getd", "tucker", "transe", "distmult", "conve", "complex", "simple")
METRICS = {"mrr": "MRR", "hits_at_10": "Hits@10", "hits_at_3": "Hits@3", "hits_at_1": "Hits@1"}
ROUNDED = 0.005  # what a figure of two digits may hide
BINARY_SIZES = ("entity_dim", "relation_dim", "ring_ranks")
PAPER_SIZES = "200 / 200 / 50"  # of these
AT_PAPER_SIZES = "at the paper's sizes"


class Verdict:
    """Whether a claim holds, and the figures that decide it, by their name in the template."""

    def __init__(self, holds: bool, **figures: object) -> None:
        self.holds = holds
        self.figures = figures


def best_on_all_metrics(results: ResultIndex) -> Verdict:
    """GETD is above every other model, by every metric, on every n-ary set."""
    leads = {}
    for data, name in N_ARY.items():
        for key, metric in METRICS.items():
            ours = results.paper_metric("getd", data, key)
            for model in (*TENSOR_MODELS[1:], *OTHER_MODELS):
                theirs = results.paper_metric(model, data, key)
                leads[f"{metric} over {MODELS[model].title} on {name}"] = ours - theirs

    where = min(leads, key=leads.__getitem__)
    lead = leads[where]
    return Verdict(lead > 0, lead=lead, where=where)


def tensor_models_above_others(results: ResultIndex) -> Verdict:
    """Each tensor model is above RAE and NaLP on each set."""
    wrong = []
    for data, name in N_ARY.items():
        for model in TENSOR_MODELS:
            ours = results.paper_metric(model, data)
            for other in OTHER_MODELS:
                theirs = results.paper_metric(other, data)
                if ours <= theirs:
                    lower = f"{MODELS[model].title} {ours:.3f}"
                    higher = f"{MODELS[other].title} {theirs:.3f}"
                    wrong.append(f"{lower} below {higher} on {name}")
    return Verdict(not wrong, exceptions="; ".join(wrong) or "all of them are")


def above_state_of_the_art(results: ResultIndex, gain: float) -> Verdict:
    """GETD is above the better of RAE and NaLP by more than a share, on average over the sets."""
    gains = {}
    for data in N_ARY:
        best = max(results.paper_metric(other, data) for other in OTHER_MODELS)
        gains[data] = results.paper_metric("getd", data) / best - 1
    average = mean(gains.values())
    return Verdict(average > gain, average=average, **gains)


def above_nalp(results: ResultIndex, data: str, gain: float, hits: float) -> Verdict:
    """GETD is above NaLP by this much MRR, and by this share of Hits@1."""
    ours = f"paper/getd-{data}"
    theirs = f"paper/nalp-{data}"
    difference = results.metric(ours) - results.metric(theirs)
    ratio = results.metric(ours, "hits_at_1") / results.metric(theirs, "hits_at_1") - 1

    holds = difference >= gain - ROUNDED and ratio >= hits - ROUNDED
    samples = [result.protocol.sample for result in results.require(theirs)]
    drawn = [size for size in samples if size]
    note = f"; NaLP on {min(drawn):,} facts" if drawn else ""
    return Verdict(holds, difference=difference, ratio=ratio, note=note)


def smaller_gain_with_four_entities(results: ResultIndex) -> Verdict:
    """GETD gains less over NaLP on the 4-ary part of a data set than on its 3-ary part."""
    gains = {}
    for data in N_ARY:
        gains[data] = results.paper_metric("getd", data) - results.paper_metric("nalp", data)
    holds = gains["wikipeople-4"] < gains["wikipeople-3"] and gains["jf17k-4"] < gains["jf17k-3"]
    return Verdict(holds, **gains)


def in_order(results: ResultIndex, data: str) -> Verdict:
    """GETD, n-TuckER, n-CP: none is below the next."""
    getd, tucker, cp = (results.paper_metric(model, data) for model in TENSOR_MODELS)
    return Verdict(getd >= tucker >= cp, getd=getd, tucker=tucker, cp=cp)


def within_an_hour(results: ResultIndex) -> Verdict:
    """No measured time is above its published one."""
    cost = results.require_table(Cost)
    measured = cost.measured.as_dict()
    published = cost.published.as_dict()
    return Verdict(all(measured[key] <= published[key] for key in published), **measured)


def expressive_as_published(results: ResultIndex) -> Verdict:
    """The same models are fully expressive as in the paper's table."""
    wrong = []
    for name, model in results.require_table(Complexity).rows.items():
        if model.published is not None and model.fully_expressive != model.published:
            negation = "" if model.fully_expressive else "not "
            wrong.append(f"{name} is {negation}fully expressive")
    return Verdict(not wrong, exceptions=", ".join(wrong) or "each is as published")


def near_tucker(results: ResultIndex, gap: float) -> Verdict:
    """On WN18 GETD is second only to TuckER, and no further from it than this."""
    ring, tucker, *others = _binary_metrics(results, "wn18", "mrr")
    best = max(others)
    holds = tucker - ring < gap + ROUNDED / 10 and tucker >= ring > best
    return Verdict(holds, tucker=tucker, ring=ring, best=best, sizes=_sizes(results, "wn18"))


def above_all_on_fb15k(results: ResultIndex, key: str, gain: float, rounded: float) -> Verdict:
    """On FB15k GETD is above all other models, and above TuckER by this much."""
    ring, tucker, *others = _binary_metrics(results, "fb15k", key)
    holds = ring - tucker >= gain - rounded and ring > max(others)
    return Verdict(holds, ring=ring, tucker=tucker, sizes=_sizes(results, "fb15k"))


def binary_parameters(results: ResultIndex, core: int, ring: int) -> Verdict:
    """At the paper's sizes TuckER learns more than GETD: what its core has more than the ring."""
    getd = results.require("best/getd-wn18")[0]
    tucker = results.require("best/tucker-wn18")[0]
    sizes = _sizes(results, "wn18")
    if sizes != AT_PAPER_SIZES:
        raise NotMeasured(sizes)
    difference = tucker.parameters - getd.parameters
    return Verdict(difference == core - ring, difference=difference)


def not_measured(results: ResultIndex, reason: str) -> Verdict:
    """No row measures the claim."""
    raise NotMeasured(reason)


def _binary_metrics(results: ResultIndex, data: str, key: str) -> list[float]:
    return [results.metric(f"best/{model}-{data}", key) for model in BINARY_MODELS]


def _sizes(results: ResultIndex, data: str) -> str:
    """Say at which sizes GETD was measured on a binary set."""
    model = results.require(f"best/getd-{data}")[0].settings.model.model_dump()
    sizes = " / ".join(str(model[key]) for key in BINARY_SIZES)
    if sizes == PAPER_SIZES:
        return AT_PAPER_SIZES
    return f"GETD with sizes {sizes}, the paper's {PAPER_SIZES}"

"""Checks of what the paper says about its tables: link prediction, cost, complexity.

A check says whether a claim holds, and the figures that decide it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from getd.experiments.result import Complexity, Cost
from getd.experiments.result_index import NotMeasured, ResultIndex
from getd.models.getd import GETDSettings
from getd.models.registry import MODELS

Verdict = tuple[bool, str]  # whether the claim holds, and the figures
Check = Callable[[ResultIndex], Verdict]

N_ARY = {
    "wikipeople-3": "WikiPeople-3",
    "wikipeople-4": "WikiPeople-4",
    "jf17k-3": "JF17K-3",
    "jf17k-4": "JF17K-4",
}
TENSOR_MODELS = ("getd", "n-tucker", "n-cp")
OTHER_MODELS = ("rae", "nalp")
BINARY_MODELS = ("transe", "distmult", "conve", "complex", "simple")  # and GETD and TuckER
METRICS = {"mrr": "MRR", "hits_at_10": "Hits@10", "hits_at_3": "Hits@3", "hits_at_1": "Hits@1"}
SECONDS = {
    "epoch_seconds": "an epoch",
    "total_seconds": "a training",
    "inference_seconds": "ranking test",
}
ROUNDED = 0.005  # what a figure of two digits may hide
BINARY_SIZES = {"entity_dim": 200, "relation_dim": 200, "ring_ranks": 50}


def best_on_all_metrics(results: ResultIndex) -> Verdict:
    """GETD is above every other model, by every metric, on every n-ary set."""
    leads = {}
    for data, name in N_ARY.items():
        for key, metric in METRICS.items():
            ours = results.metric(f"paper/getd-{data}", key)
            for model in (*TENSOR_MODELS[1:], *OTHER_MODELS):
                label = f"{metric} over {MODELS[model].title} on {name}"
                leads[label] = ours - results.metric(f"paper/{model}-{data}", key)

    smallest = min(leads, key=leads.__getitem__)
    return leads[smallest] > 0, f"smallest lead {leads[smallest]:+.3f}: {smallest}"


def tensor_models_above_others(results: ResultIndex) -> Verdict:
    """Each tensor model is above RAE and NaLP on each set."""
    wrong = []
    for data, name in N_ARY.items():
        for model in TENSOR_MODELS:
            ours = results.metric(f"paper/{model}-{data}")
            for other in OTHER_MODELS:
                theirs = results.metric(f"paper/{other}-{data}")
                if ours <= theirs:
                    lower = f"{MODELS[model].title} {ours:.3f}"
                    higher = f"{MODELS[other].title} {theirs:.3f}"
                    wrong.append(f"{lower} below {higher} on {name}")
    return not wrong, "; ".join(wrong) or "all of them are"


def above_state_of_the_art(results: ResultIndex, gain: float) -> Verdict:
    """GETD is above the better of RAE and NaLP by more than a share, on average over the sets."""
    gains = {}
    for data, name in N_ARY.items():
        best = max(results.metric(f"paper/{other}-{data}") for other in OTHER_MODELS)
        gains[name] = results.metric(f"paper/getd-{data}") / best - 1

    average = mean(gains.values())
    figures = ", ".join(f"{name} {value:+.1%}" for name, value in gains.items())
    return average > gain, f"{average:+.1%} on average: {figures}"


def above_nalp(results: ResultIndex, data: str, gain: float, hits: float) -> Verdict:
    """GETD is above NaLP by this much MRR, and by this share of Hits@1."""
    ours = f"paper/getd-{data}"
    theirs = f"paper/nalp-{data}"
    difference = results.metric(ours) - results.metric(theirs)
    ratio = results.metric(ours, "hits_at_1") / results.metric(theirs, "hits_at_1") - 1

    figures = f"MRR {difference:+.3f}, Hits@1 {ratio:+.1%}"
    sample = results.sample(theirs)
    if sample:
        figures += f"; NaLP{sample}"
    return difference >= gain - ROUNDED and ratio >= hits - ROUNDED, figures


def smaller_gain_with_four_entities(results: ResultIndex) -> Verdict:
    """GETD gains less over NaLP on the 4-ary part of a data set than on its 3-ary part."""
    gains = {}
    for data in N_ARY:
        theirs = results.metric(f"paper/nalp-{data}")
        gains[data] = results.metric(f"paper/getd-{data}") - theirs

    figures = ", ".join(f"{name} {gains[data]:+.3f}" for data, name in N_ARY.items())
    return all(gains[f"{base}-4"] < gains[f"{base}-3"] for base in ("wikipeople", "jf17k")), figures


def in_order(results: ResultIndex, data: str) -> Verdict:
    """GETD, n-TuckER, n-CP: none is below the next."""
    getd, tucker, cp = (results.metric(f"paper/{model}-{data}") for model in TENSOR_MODELS)
    return getd >= tucker >= cp, f"{getd:.3f}, {tucker:.3f}, {cp:.3f}"


def within_an_hour(results: ResultIndex) -> Verdict:
    """No measured time is above its published one."""
    cost = results.require_table(Cost)
    measured = cost.measured.model_dump()
    published = cost.published.model_dump()
    figures = ", ".join(f"{name} {measured[key]:g} s" for key, name in SECONDS.items())
    return all(measured[key] <= published[key] for key in SECONDS), f"{figures}, on one CPU core"


def expressive_as_published(results: ResultIndex) -> Verdict:
    """The same models are fully expressive as in the paper's table."""
    wrong = []
    for name, model in results.require_table(Complexity).rows.items():
        if model.published is not None and model.fully_expressive != model.published:
            negation = "" if model.fully_expressive else "not "
            wrong.append(f"{name} is {negation}fully expressive")
    return not wrong, ", ".join(wrong) or "each is as published"


def near_tucker(results: ResultIndex, gap: float) -> Verdict:
    """On WN18 GETD is second only to TuckER, and no further from it than this."""
    ring = results.metric("best/getd-wn18")
    tucker = results.metric("best/tucker-wn18")
    best = max(results.metric(f"best/{model}-wn18") for model in BINARY_MODELS)
    figures = f"TuckER {tucker:.4f}, GETD {ring:.4f}, the next {best:.4f}; "
    is_near = tucker - ring < gap + ROUNDED / 10
    return is_near and tucker >= ring > best, figures + _sizes(results, "wn18")


def above_all_on_fb15k(results: ResultIndex, key: str, gain: float, rounded: float) -> Verdict:
    """On FB15k GETD is above all other models, and above TuckER by this much."""
    ring = results.metric("best/getd-fb15k", key)
    tucker = results.metric("best/tucker-fb15k", key)
    others = [results.metric(f"best/{model}-fb15k", key) for model in BINARY_MODELS]
    figures = f"GETD {ring:.3f}, TuckER {tucker:.3f}; {_sizes(results, 'fb15k')}"
    return ring - tucker >= gain - rounded and ring > max(others), figures


def binary_parameters(results: ResultIndex, core: int, ring: int) -> Verdict:
    """At the paper's sizes TuckER learns more than GETD: what its core has more than the ring."""
    getd = results.require("best/getd-wn18")[0]
    tucker = results.require("best/tucker-wn18")[0]
    sizes = _sizes(results, "wn18")
    if sizes != PAPER_SIZES:
        raise NotMeasured(sizes)
    difference = tucker.parameters - getd.parameters
    return difference == core - ring, f"TuckER has {difference:,} more"


def not_measured(results: ResultIndex, reason: str) -> Verdict:
    """No row measures the claim."""
    raise NotMeasured(reason)


PAPER_SIZES = "at the paper's sizes"


def _sizes(results: ResultIndex, data: str) -> str:
    """Say at which sizes GETD was measured on a binary set."""
    settings = results.require(f"best/getd-{data}")[0].settings.model
    assert isinstance(settings, GETDSettings)
    measured = settings.model_dump(include=set(BINARY_SIZES))
    if measured == BINARY_SIZES:
        return PAPER_SIZES
    sizes = " / ".join(str(measured[key]) for key in BINARY_SIZES)
    paper = " / ".join(map(str, BINARY_SIZES.values()))
    return f"GETD with sizes {sizes}, the paper's {paper}"

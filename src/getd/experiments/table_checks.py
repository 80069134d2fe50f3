"""Checks of what the paper says about its tables: link prediction, n-ary and binary, cost, complexity."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from getd.experiments.findings import Findings, NotMeasured

Verdict = tuple[bool, str]  # whether the claim holds, and the figures
Check = Callable[[Findings], Verdict]

N_ARY = {
    "wikipeople-3": "WikiPeople-3",
    "wikipeople-4": "WikiPeople-4",
    "jf17k-3": "JF17K-3",
    "jf17k-4": "JF17K-4",
}
TENSOR = {"getd": "GETD", "n-tucker": "n-TuckER", "n-cp": "n-CP"}
OTHERS = {"rae": "RAE", "nalp": "NaLP"}
BINARY = ("transe", "distmult", "conve", "complex", "simple")  # beside GETD and TuckER
METRICS = {"mrr": "MRR", "hits_at_10": "Hits@10", "hits_at_3": "Hits@3", "hits_at_1": "Hits@1"}
ROUNDED = 0.005  # what a figure of two digits may hide
BINARY_SIZES = {"entity_dim": 200, "relation_dim": 200, "ring_ranks": 50}


def best_on_all_metrics(findings: Findings) -> Verdict:
    """GETD is above every other model, by every metric, on every n-ary set."""
    leads = {}
    for data, name in N_ARY.items():
        for key, metric in METRICS.items():
            ours = findings.metric(f"paper/getd-{data}", key)
            for model, label in ({**TENSOR, **OTHERS}).items():
                if model != "getd":
                    leads[f"{metric} over {label} on {name}"] = ours - findings.metric(
                        f"paper/{model}-{data}", key
                    )
    smallest = min(leads, key=leads.__getitem__)
    return leads[smallest] > 0, f"smallest lead {leads[smallest]:+.3f}: {smallest}"


def tensor_models_above_others(findings: Findings) -> Verdict:
    """Each tensor model is above RAE and NaLP on each set."""
    wrong = []
    for data, name in N_ARY.items():
        for model, label in TENSOR.items():
            ours = findings.metric(f"paper/{model}-{data}")
            for other, other_label in OTHERS.items():
                theirs = findings.metric(f"paper/{other}-{data}")
                if ours <= theirs:
                    wrong.append(f"{label} {ours:.3f} below {other_label} {theirs:.3f} on {name}")
    return not wrong, "; ".join(wrong) or "all of them are"


def above_state_of_the_art(gain: float) -> Check:
    """GETD is above the better of RAE and NaLP by more than a share, on average over the sets."""

    def check(findings: Findings) -> Verdict:
        gains = {}
        for data, name in N_ARY.items():
            best = max(findings.metric(f"paper/{other}-{data}") for other in OTHERS)
            gains[name] = findings.metric(f"paper/getd-{data}") / best - 1
        average = mean(gains.values())
        figures = ", ".join(f"{name} {value:+.1%}" for name, value in gains.items())
        return average > gain, f"{average:+.1%} on average: {figures}"

    return check


def above_nalp(data: str, gain: float, hits: float) -> Check:
    """GETD is above NaLP by so much MRR, and by such a share of Hits@1."""

    def check(findings: Findings) -> Verdict:
        ours, theirs = f"paper/getd-{data}", f"paper/nalp-{data}"
        difference = findings.metric(ours) - findings.metric(theirs)
        ratio = findings.metric(ours, "hits_at_1") / findings.metric(theirs, "hits_at_1") - 1
        sample = findings.sample(theirs)
        figures = f"MRR {difference:+.3f}, Hits@1 {ratio:+.1%}" + (
            f"; NaLP{sample}" if sample else ""
        )
        return difference >= gain - ROUNDED and ratio >= hits - ROUNDED, figures

    return check


def smaller_gain_with_four_entities(findings: Findings) -> Verdict:
    """What GETD gains over NaLP is less on the 4-ary part of a data set than on its 3-ary part."""
    gain = {
        data: findings.metric(f"paper/getd-{data}") - findings.metric(f"paper/nalp-{data}")
        for data in N_ARY
    }
    figures = ", ".join(f"{name} {gain[data]:+.3f}" for data, name in N_ARY.items())
    return all(gain[f"{base}-4"] < gain[f"{base}-3"] for base in ("wikipeople", "jf17k")), figures


def in_order(data: str) -> Check:
    """GETD, n-TuckER, n-CP: none is below the next."""

    def check(findings: Findings) -> Verdict:
        getd, tucker, cp = (findings.metric(f"paper/{model}-{data}") for model in TENSOR)
        return getd >= tucker >= cp, f"{getd:.3f}, {tucker:.3f}, {cp:.3f}"

    return check


def within_an_hour(findings: Findings) -> Verdict:
    """No measured time is above its published one."""
    (result,) = findings.results("cost")
    measured, published = result["found"], result["published"]
    names = {
        "epoch_seconds": "an epoch",
        "total_seconds": "a training",
        "inference_seconds": "ranking test",
    }
    figures = ", ".join(f"{name} {measured[key]:g} s" for key, name in names.items())
    return all(measured[key] <= published[key] for key in names), f"{figures}, on one CPU core"


def expressive_as_published(findings: Findings) -> Verdict:
    """Which models are fully expressive is as the paper's table has it."""
    (result,) = findings.results("complexity")
    told = {name: row for name, row in result["rows"].items() if row["published"] is not None}
    wrong = [name for name, row in told.items() if row["fully_expressive"] != row["published"]]
    figures = ", ".join(
        f"{name} is {'' if told[name]['fully_expressive'] else 'not '}fully expressive"
        for name in wrong
    )
    return not wrong, figures or "each is as published"


def near_tucker(gap: float) -> Check:
    """On WN18 GETD is second to TuckER alone, and no further from it than this."""

    def check(findings: Findings) -> Verdict:
        ring, tucker = findings.metric("best/getd-wn18"), findings.metric("best/tucker-wn18")
        best = max(findings.metric(f"best/{model}-wn18") for model in BINARY)
        figures = (
            f"TuckER {tucker:.4f}, GETD {ring:.4f}, the next {best:.4f}; {_sizes(findings, 'wn18')}"
        )
        return tucker - ring < gap + ROUNDED / 10 and tucker >= ring > best, figures

    return check


def above_all_on_fb15k(key: str, gain: float, rounded: float) -> Check:
    """On FB15k GETD is above all other models, and above TuckER by so much."""

    def check(findings: Findings) -> Verdict:
        ring, tucker = (findings.metric(f"best/{model}-fb15k", key) for model in ("getd", "tucker"))
        others = [findings.metric(f"best/{model}-fb15k", key) for model in BINARY]
        figures = f"GETD {ring:.3f}, TuckER {tucker:.3f}; {_sizes(findings, 'fb15k')}"
        return ring - tucker >= gain - rounded and ring > max(others), figures

    return check


def binary_parameters(core: int, ring: int) -> Check:
    """With the paper's sizes TuckER learns as many more numbers than GETD as its core has more than the ring."""

    def check(findings: Findings) -> Verdict:
        models = {model: findings.results(f"best/{model}-wn18")[0] for model in ("getd", "tucker")}
        if not _has_paper_sizes(findings, "wn18"):
            raise NotMeasured(_sizes(findings, "wn18"))
        difference = models["tucker"]["parameters"] - models["getd"]["parameters"]
        return difference == core - ring, f"TuckER has {difference:,} more"

    return check


def not_measured(reason: str) -> Check:
    """A claim that no row measures."""

    def check(findings: Findings) -> Verdict:
        raise NotMeasured(reason)

    return check


def _has_paper_sizes(findings: Findings, data: str) -> bool:
    settings = findings.results(f"best/getd-{data}")[0]["config"]["model"]
    return all(settings[key] == size for key, size in BINARY_SIZES.items())


def _sizes(findings: Findings, data: str) -> str:
    """At which sizes GETD was measured on a binary set."""
    settings = findings.results(f"best/getd-{data}")[0]["config"]["model"]
    sizes = " / ".join(str(settings[key]) for key in BINARY_SIZES)
    wanted = " / ".join(map(str, BINARY_SIZES.values()))
    return (
        "at the paper's sizes"
        if sizes == wanted
        else f"GETD with sizes {sizes}, the paper's {wanted}"
    )

"""The page of the collection: which kinds there are, and a table of the results of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.collection.kinds import FITTING, HELD_OUT, KINDS, REAL
from experiments.collection.results import Measurement, Result
from getd.io.atomic import atomic_path

PAGE = Path(__file__).parent / "README.md"
FITTED_SEEDS = (0, 1, 2, 3, 4)  # of the fitting kinds; rules are fitted on their validation facts
REPORTED_SEEDS = (5, 6, 7, 8, 9)
HEAD = """# The collection

This page shows whether `getd train DATA`, with no settings at all, beats counting. It is made by
`python -m experiments.collection --real`. Every training should meet these conditions:

- the MRR, in total and for every arity with 50 questions or more, is not below that of the better
  baseline (`frequency` or `lookup`, whichever has the higher MRR on these questions);
- the MRR in total is above that of the better baseline, unless the baseline has 0.95 or more. The
  kinds `noise` and `zipf-popularity` are exempt, because they contain nothing that a model could
  learn beyond counting;
- after epoch 5, the MRR on validation never falls more than 0.1 below its best so far;
- the training takes no more than 40 minutes.

"Below" and "above" mean that the 95 % interval of the difference, from a paired bootstrap over the
facts, lies on one side of 0. So of the models that equal the baseline, about one in forty counts as
below it.

The rules behind the defaults are fitted on the fitting kinds: on validation facts of seeds 0 to 4
(`--valid`), without reading test. Each held-out kind has the same shape as a fitting kind and is
never used to fit a rule. The seed generates the facts of a kind and splits them; for a real data
set, it is the seed of the training. The facts are written to a file and loaded from it, as a user
would do. A row with a missing value currently belongs to another relation. `--label` names the
defaults that were measured; `results.json` records their settings and commits.
"""
HEADER = (
    "| data | facts | seeds | MRR | better baseline | difference | above | below "
    "| arities below | largest fall | minutes | fails |"
)


@dataclass(frozen=True)
class Part:
    """A table of the page."""

    title: str
    split: str
    names: Iterable[str]  # of data sets, in order
    seeds: Container[int]

    def has(self, result: Result) -> bool:
        """Whether a result belongs to the part."""
        is_of_part = result.split == self.split and result.seed in self.seeds
        return is_of_part and result.data in self.names


PARTS = (
    Part("Fitting kinds, seeds 5 to 9", "test", FITTING, REPORTED_SEEDS),
    Part("Held-out kinds", "test", HELD_OUT, range(1000)),
    Part("Real data sets", "test", REAL, range(1000)),
    Part("Fitting kinds, seeds 0 to 4, on validation", "valid", FITTING, FITTED_SEEDS),
)


def write_page(results: Iterable[Result], path: Path = PAGE) -> None:
    """Write the page."""
    by_label: dict[str, list[Result]] = {}
    for result in results:
        by_label.setdefault(result.label, []).append(result)

    lines = [HEAD, *_kinds_table()]
    for label, of_label in sorted(by_label.items()):
        for part in PARTS:
            members = [result for result in of_label if part.has(result)]
            if members:
                lines += ["", f"## {part.title}: {label}", "", summary(members), ""]
                lines += [HEADER, "|---" * 12 + "|"]
                lines += part_rows(part.names, members)

    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _kinds_table() -> list[str]:
    """Return a table of the kinds, with both kinds of a pair next to each other."""
    lines = ["## Kinds", "", "| shape | kind | facts | |", "|---|---|---|---|"]
    for names in zip(FITTING, HELD_OUT, strict=True):
        for name in names:
            kind = KINDS[name]
            part = "fitting" if name in FITTING else "held out"
            lines.append(f"| {kind.shape} | {name} | {kind.description} | {part} |")
    return lines


def summary(results: Sequence[Result]) -> str:
    """Count the verdicts of results in a sentence."""
    failures = Counter(failure for result in results for failure in result.failures())
    n_sound = sum(not result.failures() for result in results)
    n_above = sum(bool(r.measured and r.measured.total.is_above) for r in results)

    counts = [
        f"Above the better baseline in total: {n_above}",
        f"below: {failures['below']}",
        f"neither, but required to be above: {failures['not above']}",
        f"below for an arity: {failures['arity below']}",
        f"fell by more than 0.1: {failures['fall']}",
        f"took more than 40 minutes: {failures['slow']}",
        f"ended with an error: {failures['error']}",
    ]
    return f"{n_sound} of {len(results)} trainings meet all conditions. {'; '.join(counts)}."


def part_rows(names: Iterable[str], results: Sequence[Result]) -> list[str]:
    """Return a row for each data set with results."""
    rows = []
    for name in names:
        seeds = [result for result in results if result.data == name]
        if seeds:
            rows.append(f"| {' | '.join([name, *_cells(seeds)])} |")
    return rows


def _cells(results: Sequence[Result]) -> list[str]:
    """Return the cells of a data set: means over seeds, extremes, and counts of verdicts."""
    failures = Counter(failure for result in results for failure in result.failures())
    fails = ", ".join(f"{name} {number}" for name, number in sorted(failures.items()))
    measured = [result.measured for result in results if result.measured]
    if not measured:
        return ["", str(len(results)), *[""] * 8, fails]

    totals = [one.total for one in measured]
    differences = sorted(total.difference for total in totals)
    return [
        f"{sum(measured[0].facts.values()):,}",
        str(len(results)),
        _mean([total.mrr for total in totals]),
        _mean([total.baseline_mrr for total in totals]),
        f"{differences[0]:+.3f} to {differences[-1]:+.3f}",
        str(sum(total.is_above for total in totals)),
        str(sum(total.is_below for total in totals)),
        _arities_below(measured),
        f"{max(one.fall for one in measured):.3f}",
        f"{max(one.seconds for one in measured) / 60:.1f}",
        fails,
    ]


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}"


def _arities_below(measured: Sequence[Measurement]) -> str:
    """Return the arities that are below the baseline, with the number of seeds."""
    counts = Counter(arity for one in measured for arity in one.arities_below)
    return ", ".join(f"{arity} ({number})" for arity, number in sorted(counts.items()))

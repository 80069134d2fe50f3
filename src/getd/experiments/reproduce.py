"""Measure rows within a budget of time, and write the page of results."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic

from getd.errors import ConfigError
from getd.experiments.measure import Measurer, Progress
from getd.experiments.result import read_results, result_path, write_result
from getd.experiments.rows import all_rows, find_row
from getd.training.callbacks import Callbacks, Interrupted

MADE_FROM_RESULTS = ("cost", "claims")  # rows that are computed from the results of all others


@dataclass(frozen=True)
class Reproduction:
    """What was measured."""

    written: list[Path]  # new results
    page: Path
    is_finished: bool  # False: the budget was spent first


@dataclass(frozen=True)
class RowStatus:
    """A row, and how much of it is measured."""

    row: str
    about: str
    results: int
    minutes: float | None  # that a training takes


def list_rows(into: Path) -> list[RowStatus]:
    """List every row with the number of its results in a folder."""
    results = Counter(result.row for result in read_results(into))
    return [
        RowStatus(name, row.info.about, results[name], row.info.minutes)
        for name, row in all_rows().items()
    ]


def reproduce(
    names: Iterable[str],
    *,
    every_row: bool = False,
    seeds: int = 1,
    budget: float | None = None,
    into: Path = Path("experiments"),
    runs: Path = Path("runs"),
    progress: Progress | None = None,
) -> Reproduction:
    """Measure rows of the paper's tables and figures, and write the page of results.

    ``budget`` is in minutes: when it is spent, the same call resumes. Results, pictures and the
    page go ``into`` a folder, run folders to ``runs``.
    """
    from getd.experiments.results_page import write_page

    if seeds < 1:
        raise ConfigError(f"--seeds: expected at least 1, found {seeds}")
    rows = list(all_rows().values()) if every_row else [find_row(name) for name in names]
    rows.sort(key=lambda row: row.name in MADE_FROM_RESULTS)
    end = monotonic() + 60 * (inf if budget is None else budget)

    def is_over() -> bool:
        return monotonic() > end

    @contextmanager
    def watch(name: str) -> Iterator[Callbacks]:
        with progress(name) if progress else nullcontext(Callbacks()) as callbacks:
            yield replace(callbacks, should_stop=is_over)

    measurer = Measurer(into, runs, watch)

    # Results that exist are kept, except the verdicts on claims, which follow from all others.
    written = []
    is_finished = True
    try:
        for row in rows:
            if is_over():
                raise Interrupted("the budget is spent")
            for point in row.with_seeds(range(seeds)):
                if row.name == "claims" or not result_path(into, point).exists():
                    result = measurer.measure(row, point)
                    written.append(write_result(into, point, result))
    except Interrupted:
        if not is_over():
            raise Interrupted("resume with the same command") from None
        is_finished = False
    return Reproduction(written, write_page(into), is_finished)

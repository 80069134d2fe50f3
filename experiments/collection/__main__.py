"""Train on every kind of data with nothing but defaults, and compare with counting.

    python -m experiments.collection [--kinds …] [--real [NAME …]] [--seeds …] [--valid]
        [--label NAME] [--jobs N] [--budget MINUTES]

Without ``--kinds``, all kinds are measured on test with the seeds 5 to 9; with ``--valid``, the
fitting kinds on validation with the seeds 0 to 4, and test is not read. ``--real`` adds the real
data sets. Trainings that are in ``results.json`` already are skipped, so an interrupted round is
resumed; those that ended with an error are tried again. The page is written at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context

from experiments.collection.kinds import FITTING, HELD_OUT, KINDS, REAL
from experiments.collection.measure import Task, measure
from experiments.collection.page import FITTED_SEEDS, REPORTED_SEEDS, write_page
from experiments.collection.results import Result, add_result, read_results, result_key


def main() -> None:
    """Run the trainings that are missing, then write the page."""
    options = parser().parse_args()
    tasks = missing(options, read_results())
    print(f"{len(tasks)} trainings to do", flush=True)

    deadline = time.monotonic() + 60 * options.budget
    try:
        for result in run(tasks, options.jobs, deadline):
            add_result(result)
            print(line_of(result), flush=True)
    finally:
        write_page(read_results().values())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.collection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), metavar="KIND")
    parser.add_argument("--real", nargs="*", choices=REAL, metavar="NAME", help="no name: all")
    parser.add_argument("--seeds", nargs="+", type=int, help="of real data sets: 0 by default")
    parser.add_argument("--valid", action="store_true", help="measure on validation")
    parser.add_argument("--label", default="default", help="which defaults these are")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    budget_help = "minutes after which no training is begun"
    parser.add_argument("--budget", type=float, default=math.inf, help=budget_help)
    return parser


def missing(options: argparse.Namespace, results: Mapping[str, Result]) -> list[Task]:
    """Return the trainings that are not measured yet, seed by seed."""
    split = "valid" if options.valid else "test"
    kinds = options.kinds
    if kinds is None:
        kinds = list(FITTING if options.valid else KINDS)
    held_out = [kind for kind in kinds if kind in HELD_OUT]
    if options.valid and held_out:
        raise SystemExit(f"--valid is for fitting; held out from that: {', '.join(held_out)}")

    seeds = options.seeds or (FITTED_SEEDS if options.valid else REPORTED_SEEDS)
    pairs = [(data, seed) for seed in seeds for data in kinds]
    real = [] if options.real is None else options.real or REAL
    pairs += [(data, seed) for seed in options.seeds or [0] for data in real]

    threads = max(1, (os.cpu_count() or 1) // options.jobs) if options.jobs > 1 else None
    tasks = []
    for data, seed in pairs:
        result = results.get(result_key(options.label, split, data, seed))
        if result is None or result.error:
            tasks.append(Task(options.label, split, data, seed, threads))
    return tasks


def run(tasks: Sequence[Task], jobs: int, deadline: float) -> Iterator[Result]:
    """Measure tasks, several at a time; after the deadline none is begun."""
    if jobs == 1:
        for task in tasks:
            if time.monotonic() >= deadline:
                return
            yield measure(task)
        return

    running: set[Future[Result]] = set()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for task in tasks:
            if len(running) == jobs:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
            if time.monotonic() >= deadline:
                break
            running.add(pool.submit(measure, task))
        yield from (future.result() for future in wait(running).done)


def line_of(result: Result) -> str:
    """Describe a result in one line."""
    if result.measured is None:
        return f"{result.key}: {result.error}"
    total = result.measured.total
    low, high = total.interval
    mrrs = f"MRR {total.mrr:.3f}, {total.better} {total.baseline_mrr:.3f}"
    verdict = ", ".join(result.failures()) or "holds"
    seconds = f"{result.measured.seconds:.0f} s"
    return f"{result.key}: {mrrs} ({low:+.3f} to {high:+.3f}), {verdict}, {seconds}"


if __name__ == "__main__":
    main()

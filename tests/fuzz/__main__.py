"""``python -m tests.fuzz --minutes N [--seed S] [--kinds inputs runs] [--into FOLDER]``; ``--replay
inputs-17``.

The cases run in a process of their own: where that dies (a library aborts, or hangs where no alarm
is heard), the case it was at has failed, and another process goes on behind it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Journal, Summary, run_campaign, run_case
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run campaigns, or one case again."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Damaged files into the command line."
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for each kind")
    parser.add_argument("--cases", type=int, default=None, help="for each kind, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--kinds", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument(
        "--into", type=Path, default=Path("fuzz-failures"), help="where cases that fail are kept"
    )
    parser.add_argument("--replay", help="the name of one case to run again, with its seed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as shared:
        if given.replay:
            return _replay(given.replay, given.seed, Path(shared), given.into)
        summaries = [_campaign(kind, given, Path(shared)) for kind in given.kinds]
    return int(any(summary.failed for summary in summaries))


def _campaign(kind: str, given: argparse.Namespace, shared: Path) -> Summary:
    """A campaign over one kind, in as many processes one after the other as it takes."""
    end = time.monotonic() + 60 * given.minutes
    given.into.mkdir(parents=True, exist_ok=True)
    journal = Journal(
        given.into / f"{kind}-seed-{given.seed}-from-{given.start}.json", Summary(next=given.start)
    )
    summary, last = journal.summary, None if given.cases is None else given.start + given.cases
    while time.monotonic() < end and (last is None or summary.next < last):
        worker = multiprocessing.get_context("spawn").Process(
            target=run_campaign,
            args=(kind, given.seed, shared, end - time.monotonic(), given.into, journal, last),
            daemon=True,  # ends with this process
        )
        worker.start()
        worker.join()
        summary = journal.read()
        if worker.exitcode == 0:
            break
        if worker.exitcode in (-signal.SIGTERM, -signal.SIGINT):
            break
        summary.failed.append(
            (f"{kind}-{summary.next}", [f"the process ended with {worker.exitcode}"])
        )
        summary.next += 1
        journal.write(summary)
    sys.stdout.write("\n".join([*summary.lines(), ""]))
    return summary


def _replay(name: str, seed: int, shared: Path, into: Path) -> int:
    kind, _, number = name.partition("-")
    case = next(TARGETS[kind](seed, shared, int(number)))
    wrong = run_case(case, Summary(), seed, into)
    sys.stdout.write(f"{name}: {', '.join(wrong) or 'as it must be'}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.exit(main())

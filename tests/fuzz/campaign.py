"""Case after case within a time: what is wrong is kept in a folder, the rest is counted."""

from __future__ import annotations

import faulthandler
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.case import Case, Outcome, faults, longest_line
from tests.fuzz.command import TimeLimit
from tests.fuzz.targets import TARGETS

LIMIT = 5.0  # seconds of work for a case


@dataclass
class Summary:
    """What a campaign counted."""

    next: int = 0  # the number of the case to run next
    cases: dict[str, int] = field(default_factory=dict)  # by kind of target
    codes: dict[str, int] = field(default_factory=dict)  # by exit code
    failed: list[tuple[str, list[str]]] = field(
        default_factory=list
    )  # name of the case, what is wrong
    slowest: tuple[float, str] = (0.0, "")
    longest: tuple[int, str] = (0, "")

    def add(self, case: Case, outcome: Outcome | None, seconds: float) -> list[str]:
        """Count a case; what is wrong with it. No outcome: the time was over."""
        kind = case.name.partition("-")[0]
        self.cases[kind] = self.cases.get(kind, 0) + 1
        self.slowest = max(tuple(self.slowest), (seconds, case.name))
        wrong = ["too slow"] if outcome is None else faults(outcome)
        if outcome is not None:
            self.codes[str(outcome.code)] = self.codes.get(str(outcome.code), 0) + 1
            self.longest = max(tuple(self.longest), (longest_line(outcome), case.name))
        if wrong:
            self.failed.append((case.name, wrong))
        return wrong

    def lines(self) -> list[str]:
        """The summary for people."""
        counted = {
            "tracebacks": self._failed("traceback"),
            "too slow": self._failed("too slow"),
            "raw control characters": self._failed("a raw control character"),
        }
        codes = [f"{code}: {number:,}" for code, number in sorted(self.codes.items())]
        return [
            *(f"{kind}: {number:,}" for kind, number in self.cases.items()),
            f"exit codes: {', '.join(codes)}",
            *(f"{what}: {number:,}" for what, number in counted.items()),
            f"slowest: {self.slowest[0]:.2f} s ({self.slowest[1]})",
            f"longest message line: {self.longest[0]} characters ({self.longest[1]})",
            f"failed: {len(self.failed):,}",
            *(f"  {name}: {', '.join(wrong)}" for name, wrong in self.failed[:20]),
        ]

    def _failed(self, what: str) -> int:
        return sum(any(text.startswith(what) for text in wrong) for _, wrong in self.failed)


@dataclass
class Journal:
    """A summary in a file, so that it outlives the process."""

    path: Path
    summary: Summary = field(default_factory=Summary)

    def read(self) -> Summary:
        """What was written last."""
        values = (
            json.loads(self.path.read_text(encoding="utf-8"))
            if self.path.exists()
            else asdict(self.summary)
        )
        return Summary(**values)

    def write(self, summary: Summary) -> None:
        """Keep a summary."""
        self.path.write_text(json.dumps(asdict(summary)), encoding="utf-8")


def run_campaign(
    kind: str,
    seed: int,
    shared: Path,
    seconds: float,
    kept: Path | None = None,
    journal: Journal | None = None,
    last: int | None = None,
    limit: float = LIMIT,
) -> Summary:
    """Run the cases of a kind for some seconds, or up to the ``last``; those that fail are put
    under ``kept``.
    """
    summary = journal.read() if journal else Summary()
    end = time.monotonic() + seconds
    for number, case in enumerate(TARGETS[kind](seed, shared, summary.next), start=summary.next):
        summary.next = number
        if journal:
            journal.write(summary)
            _watch(number)
        if time.monotonic() > end or number == last:
            break
        run_case(case, summary, seed, kept, limit)
    return summary


def _watch(number: int) -> None:
    """End the process where a case hangs in a library, which hears no alarm; the journal says which
    case it was.
    """
    if number % 100 == 0:
        faulthandler.dump_traceback_later(1800, exit=True, file=sys.__stderr__)


def run_case(
    case: Case, summary: Summary, seed: int, kept: Path | None = None, limit: float = LIMIT
) -> list[str]:
    """Make and run one case; what is wrong with it. What was too slow has a second try, for the
    machine may be busy.
    """
    outcome, seconds = _timed(case, limit)
    if outcome is None:
        outcome, seconds = _timed(case, limit)
    wrong = summary.add(case, outcome, seconds)
    if wrong and kept is not None:
        _keep(case, outcome, {"case": case.name, "seed": seed, "wrong": wrong}, kept)
    return wrong


def _timed(case: Case, limit: float) -> tuple[Outcome | None, float]:
    """The outcome of a case, if it comes in time, and the seconds of work."""
    with tempfile.TemporaryDirectory() as folder:
        case.make(Path(folder))
        begin, outcome = time.process_time(), None
        try:
            with _time_limit(limit):
                outcome = case.run(Path(folder))
        except TimeLimit:
            pass
        return outcome, time.process_time() - begin


def _keep(case: Case, outcome: Outcome | None, about: dict[str, object], kept: Path) -> None:
    folder = kept / f"{case.name}-seed-{about['seed']}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    case.make(folder / "files")
    record = about | (asdict(outcome) if outcome else {})
    (folder / "case.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """An alarm after so many seconds of work, or sixty times as many by the clock, however busy the
    machine is.
    """

    def over(*_: object) -> None:
        raise TimeLimit

    timers = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, 60 * seconds),
    }
    before = {number: signal.signal(number, over) for number, _ in timers.values()}
    for timer, (_, moment) in timers.items():
        signal.setitimer(timer, moment)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)

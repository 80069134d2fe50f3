"""What every benchmark shares: the form of a result, timing in turns, memory of a child process.

A module ``bench_NAME.py`` has one function, ``measure(quick: bool = False) -> Result``, which
asserts what it times; with ``quick`` its sizes are tiny and its figures mean nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
Tables = dict[str, dict[str, dict[str, float]]]  # title, row, column
MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Figure:
    """One number that is reported."""

    name: str
    value: float
    unit: str  # "x", "ms", "facts/s", "MiB", "slope", ...
    limit: float | None = None  # None: shown only
    at_least: bool = False  # the limit is a lower one

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit; NaN never is."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Series:
    """A curve of a plot, or its bars."""

    name: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class Plot:
    """Curves over one pair of axes; with ``x_ticks`` bars, one place for each tick."""

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    log: bool = True  # both axes (bars: never)
    x_ticks: list[str] | None = None


def bars(title: str, y_label: str, values: Mapping[str, float]) -> Plot:
    """A plot of one bar for each value."""
    series = Series(y_label, [float(i) for i in range(len(values))], list(values.values()))
    return Plot(title, "", y_label, [series], log=False, x_ticks=list(values))


@dataclass(frozen=True)
class Result:
    """What a benchmark found."""

    name: str  # facts, ranking, training, scaling, ...
    figures: list[Figure]
    plots: list[Plot]
    details: dict[str, object]  # raw seconds, bytes, sizes: JSON
    packages: tuple[str, ...]  # whose versions matter
    tables: Tables = field(default_factory=dict)  # figures without limits, of many alike

    @property
    def holds(self) -> bool:
        """Whether every figure is within its limit."""
        return all(figure.holds for figure in self.figures)


class Skipped(Exception):
    """Something a benchmark needs is not here; the message says how to get it."""


def timings(*works: Callable[[], object], repeats: int = 7) -> list[list[float]]:
    """Time several runs of each; they take turns, so that all meet the same conditions."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, seconds in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    return times


def best(*works: Callable[[], object], repeats: int = 7) -> list[float]:
    """The shortest of several runs of each, in seconds, taking turns."""
    return [min(seconds) for seconds in timings(*works, repeats=repeats)]


def summary(times: Sequence[float]) -> dict[str, float | int]:
    """Runs as JSON: how many, the shortest and the median, in seconds."""
    return {"runs": len(times), "best": min(times), "median": median(times)}


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of growth: the slope of the line through the points on two logarithmic axes.

    >>> round(slope([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@dataclass(frozen=True)
class Memory:
    """Resident memory of a child process, in bytes."""

    growth: int  # of the peak during ``work()``, over the state before it
    kept: int  # growth that is left after ``work()``
    peak: int  # of the whole process until the end of ``work()``, imports and all
    value: Any  # what ``work()`` returned, where it is JSON


_CHILD = """
import gc as _gc, json as _json, sys as _sys
from pathlib import Path as _Path
def _status(key):
    lines = _Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
exec(compile(_sys.argv.pop(1), "child", "exec"))
_gc.collect()
_earlier, _before = _status("VmHWM"), _status("VmRSS")
_Path("/proc/self/clear_refs").write_text("5")
_value = work()
_peak = _status("VmHWM")
_gc.collect()
_after = _status("VmRSS")
if "check" in globals():
    check(_value)
try:
    _shown = _json.dumps(_value)
except TypeError:
    _shown = "null"
print("\\nMEMORY", _peak - _before, _after - _before, max(_peak, _earlier), _shown)
"""


def memory(code: str, *args: str) -> Memory:
    """Run code in a child process and callbacks its resident memory.

    The code's top level imports and sets up, which does not count; its function ``work()`` is what
    is measured; its function ``check(value)``, if there is one, gets what ``work()`` returned and
    asserts it, unmeasured. The arguments are ``sys.argv[1:]``.

    Raises
    ------
    Skipped
        Where the system does not tell (anything but Linux).
    """
    if not Path("/proc/self/clear_refs").exists():
        raise Skipped("peak memory is read from /proc, which only Linux has")
    command = [sys.executable, "-c", _CHILD, code, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"the child process failed:\n{done.stderr}")
    line = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("MEMORY "))
    _, growth, kept, peak, value = line.split(" ", 4)
    return Memory(int(growth), int(kept), int(peak), json.loads(value))


def peak_memory(code: str, *args: str) -> int:
    """How far the peak of resident memory rises during ``work()``, in bytes; see :func:`memory`."""
    return memory(code, *args).growth

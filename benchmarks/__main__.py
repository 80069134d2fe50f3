"""Run the benchmarks.

    python -m benchmarks [NAME ...] [--quick]

Each runs in a process of its own. Its figures are shown beside their limits and kept in
``results/NAME.json``, its plots in ``results/NAME.svg``, and ``README.md`` gets its table; the exit
code is 1 if a figure is beyond its limit. ``--quick`` takes tiny sizes, checks results and not
limits, and keeps nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import ROOT, Skipped
from benchmarks.report import from_json, show, to_json, update_readme, write
from getd.errors import nearest

HERE = Path(__file__).parent
OPTIONAL = ("pykeen",)  # packages of the extra "bench"
Outcome = dict[str, Any]  # a result as JSON, or {"skipped": why}


def names() -> list[str]:
    """All benchmarks there are."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def measure(name: str, quick: bool) -> Outcome:
    """Run one benchmark in this process."""
    try:
        return to_json(importlib.import_module(f"benchmarks.bench_{name}").measure(quick=quick))
    except Skipped as skipped:
        return {"skipped": str(skipped)}
    except ModuleNotFoundError as missing:
        if missing.name not in OPTIONAL:
            raise
        return {"skipped": f"it needs {missing.name}; pip install 'getd[bench]'"}


def measure_apart(name: str, quick: bool) -> Outcome | None:
    """Run one benchmark in a process of its own; None: it failed, with a traceback on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcome.json"
        command = [
            sys.executable,
            "-m",
            "benchmarks",
            name,
            "--outcome",
            str(file),
            *["--quick"] * quick,
        ]
        quiet = os.environ | {"KINETO_LOG_LEVEL": "99"}  # the profiler of torch says when it starts
        if subprocess.run(command, check=False, cwd=ROOT, env=quiet).returncode:
            return None
        outcome: Outcome = json.loads(file.read_text(encoding="utf-8"))
        return outcome


def main(
    arguments: Sequence[str] | None = None,
    run: Callable[[str, bool], Outcome | None] = measure_apart,
    folder: Path = HERE / "results",
    readme: Path = HERE / "README.md",
) -> int:
    """Run, show and keep; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(names())}; all if none is named",
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: check the results, keep nothing"
    )
    parser.add_argument(
        "--outcome", type=Path, help=argparse.SUPPRESS
    )  # where a process of its own leaves its result
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in names():
            known = ", ".join(names())
            parser.exit(2, f"no benchmark {name!r}{nearest(name, names())} (there are {known})\n")
    if options.outcome:
        options.outcome.write_text(
            json.dumps(measure(options.names[0], options.quick)), encoding="utf-8"
        )
        return 0
    outcomes = {}
    for name in options.names or names():
        outcomes[name] = outcome = run(name, options.quick)
        _report(name, outcome, options.quick, folder)
    kept = [outcome for outcome in outcomes.values() if outcome and "skipped" not in outcome]
    if kept and not options.quick:
        update_readme(readme, folder)
    beyond = any(not from_json(outcome).holds for outcome in kept)
    return int(None in outcomes.values() or (beyond and not options.quick))


def _report(name: str, outcome: Outcome | None, quick: bool, folder: Path) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    if outcome is None:
        console.print(f"benchmark {name} failed", style="bold red")
    elif "skipped" in outcome:
        console.print(f"benchmark {name} skipped: {outcome['skipped']}", markup=False)
    elif quick:
        show(from_json(outcome), console, enforced=False)
        with tempfile.TemporaryDirectory() as temporary:
            write(outcome, Path(temporary))
    else:
        show(from_json(outcome), console)
        write(outcome, folder)


if __name__ == "__main__":
    sys.exit(main())

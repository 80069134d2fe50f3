"""``python -m tests.fuzz --minutes N [--seed S] [--kinds inputs runs] [--into FOLDER]``; ``--replay inputs-17``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import Summary, run_campaign, run_case
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damaged files into the command line.")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--kinds", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--into", type=Path, default=Path("fuzz-failures"), help="where cases that fail are kept")
    parser.add_argument("--replay", help="the name of one case to run again, with its seed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as shared:
        if given.replay:
            return _replay(given.replay, given.seed, Path(shared), given.into)
        failed = 0
        for kind in given.kinds:
            summary = run_campaign(kind, given.seed, Path(shared), 60 * given.minutes, given.into, given.start)
            sys.stdout.write("\n".join([*summary.lines(), ""]))
            failed += len(summary.failed)
    return int(failed > 0)


def _replay(name: str, seed: int, shared: Path, into: Path) -> int:
    kind, _, number = name.partition("-")
    case = next(TARGETS[kind](seed, shared, int(number)))
    wrong = run_case(case, Summary(), seed, into)
    sys.stdout.write(f"{name}: {', '.join(wrong) or 'as it must be'}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

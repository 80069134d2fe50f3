"""Run the numeric tests as other machines would.

    python -m tests.machines [PYTEST ARGUMENT ...]

The tests of the maths, the ranks and the losses, once for each machine of
``environments.machines``, as many at a time as there are CPUs. Prints the last line of each run,
and all of it where a test failed; the exit code is 1 then. Arguments, if there are any, are given
to pytest in place of the numeric tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.machines.environments import Environment, as_machine, machines

ROOT = Path(__file__).parent.parent.parent
NUMERIC = (
    "tests/algebra/test_reshape.py",
    "tests/algebra/test_ring.py",
    "tests/algebra/test_tucker_and_cp.py",
    "tests/models/test_against_pykeen.py",
    "tests/models/test_binary_models.py",
    "tests/models/test_distances.py",
    "tests/models/test_every_model.py",
    "tests/models/test_nalp.py",
    "tests/models/test_norms.py",
    "tests/models/test_rae.py",
    "tests/models/test_transe.py",
    "tests/evaluation/test_rank_scores.py",
    "tests/evaluation/test_metrics.py",
    "tests/evaluation/test_ranks.py",
    "tests/training/losses/test_fused_softmax.py",
    "tests/training/losses/test_multi_answer.py",
)
# What is the same on every machine: which parameters and rows are touched, how much is held and
# computed, the ranks of one constant, the other rules for ties.
NOT_NUMERIC = (
    *(
        "every_parameter_takes_part",
        "stays_in_their_rows",
        "one_finite_score",
        "saved_scores_the_same",
    ),
    *("are_held", "grows_with_the_table", "is_computed_once", "is_counted_in_design"),
    *("constant_model_earns_chance", "optimistic", "pessimistic"),
)


def run(arguments: list[str], environment: Environment) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process that computes as that machine does."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=as_machine(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


def main() -> int:
    """Run and show; returns the exit code."""
    arguments = sys.argv[1:] or [*NUMERIC, "-k", f"not ({' or '.join(NOT_NUMERIC)})"]
    failures = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        environments = machines(Path(folder))
        for name, done in zip(
            environments, pool.map(partial(run, arguments), environments.values()), strict=True
        ):
            output = done.stdout.rstrip()
            print(f"{name}: {output.splitlines()[-1]}", flush=True)
            if done.returncode:
                failures += 1
                print(output, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

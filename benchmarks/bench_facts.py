"""A million 4-ary facts: reading and encoding, the index of known answers, memory.

    python -m benchmarks.bench_facts

Each figure is a ratio to a baseline of the same run: reading to ``polars.read_csv`` of the same file, the index to one
``np.lexsort`` of the five columns, memory to the encoded arrays. Times are the best of several.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.machine import machine_facts
from getd.facts.known import KnownAnswers
from getd.facts.load import load

N_FACTS, N_ENTITIES, N_RELATIONS, ARITY, REPEATS = 1_000_000, 100_000, 500, 4, 7
RESULTS = Path(__file__).parent / "results" / "facts.json"
LIMITS = {"read_and_encode_over_read_csv": 8, "index_over_lexsort": 8, "memory_over_encoded": 6}

# resident memory is measured in a process of its own: what importing takes does not count, all that loading takes does
_MEMORY = """
import gc, resource, sys
import getd.facts.load, getd.facts.known, numpy, polars
from pathlib import Path
polars.read_csv(b"a\\tb\\n", separator="\\t", has_header=False)
def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
kb = getd.facts.load.load(sys.argv[1])
peak = status("VmHWM")
gc.collect()
assert sum(map(len, kb.split("train").values())) > 0
print(peak - before, status("VmRSS") - before)
"""


def generate(folder: Path) -> tuple[Path, np.ndarray]:
    """A folder with one TSV file of random distinct facts, and their numbers."""
    rng = np.random.default_rng(0)
    popular = (N_ENTITIES * rng.random((N_FACTS, ARITY)) ** 2).astype(np.int64)  # few entities are in many facts
    table = np.unique(np.column_stack([rng.integers(0, N_RELATIONS, N_FACTS), popular]), axis=0)
    rng.shuffle(table)
    entity = pl.Series([f"entity/{i:06d}" for i in range(N_ENTITIES)])
    relation = pl.Series([f"relation.{i:03d}" for i in range(N_RELATIONS)])
    columns = [relation.gather(table[:, 0]).alias("r")]
    columns += [entity.gather(table[:, j + 1]).alias(f"e{j}") for j in range(ARITY)]
    pl.DataFrame(columns).write_csv(folder / "train.tsv", separator="\t", include_header=False)
    return folder / "train.tsv", table


def best(*works: Callable[[], object]) -> list[float]:
    """The shortest of several runs of each, in seconds; they take turns, so that all meet the same conditions."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, found in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return [min(found) for found in times]


def measure() -> dict[str, object]:
    """Run the benchmark and check what it times."""
    with tempfile.TemporaryDirectory() as name:
        path, table = generate(Path(name))
        kb = load(path.parent)
        facts = kb.split("train")[ARITY]
        entities = np.array([int(label[-6:]) for label in kb.entities])
        relations = np.array([int(label[-3:]) for label in kb.relations])
        assert np.array_equal(relations[facts.relation], table[:, 0])
        assert np.array_equal(entities[facts.entities], table[:, 1:])

        read_csv, read = best(
            lambda: pl.read_csv(path, separator="\t", has_header=False, quote_char=None, infer_schema=False),
            lambda: load(path.parent),
        )
        lexsort, index = best(
            lambda: np.lexsort([facts.relation, *facts.entities.T]),
            lambda: KnownAnswers.build([{ARITY: facts}], kb.n_relations, kb.n_entities),
        )
        check_index(KnownAnswers.build([{ARITY: facts}], kb.n_relations, kb.n_entities), facts.rows())

        done = subprocess.run([sys.executable, "-c", _MEMORY, name], capture_output=True, text=True, check=True)
        peak, kept = map(int, done.stdout.split())
        encoded = len(table) * (ARITY + 1) * 8
    return {
        "command": "python -m benchmarks.bench_facts",
        "facts": len(table),
        "seconds": {
            "polars.read_csv": read_csv,
            "read and encode": read,
            "np.lexsort": lexsort,
            "index, all slots": index,
        },
        "bytes": {"encoded": encoded, "peak growth": peak, "kept": kept},
        "ratios": {
            "read_and_encode_over_read_csv": read / read_csv,
            "index_over_lexsort": index / lexsort,
            "memory_over_encoded": peak / encoded,
        },
        "limits": LIMITS,
        "machine": machine_facts("getd", "numpy", "polars"),
    }


def check_index(known: KnownAnswers, rows: np.ndarray) -> None:
    """The answers of some questions, against a scan of all facts."""
    for row in rows[:: len(rows) // 20]:
        for position in range(ARITY):
            others = [0, *(j + 1 for j in range(ARITY) if j != position)]
            scanned = np.unique(rows[(rows[:, others] == row[others]).all(axis=1), position + 1])
            assert np.array_equal(known.lookup(row[:1], row[None, 1:], position).values, scanned)


def main() -> None:
    """Measure, show, save; a figure beyond its limit is a failure."""
    result = measure()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    ratios = result["ratios"]
    assert isinstance(ratios, dict)
    for name, ratio in ratios.items():
        print(f"{name:32} {ratio:6.2f}   limit {LIMITS[name]}")
    sys.exit(any(ratio > LIMITS[name] for name, ratio in ratios.items()))


if __name__ == "__main__":
    main()

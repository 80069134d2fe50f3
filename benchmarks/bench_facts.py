"""A million 4-ary facts: reading and encoding, the index of known answers, memory.

Each figure is a ratio to a baseline of the same run: reading to ``polars.read_csv`` of the same
file, the index to one ``np.lexsort`` of the five columns, memory to the encoded arrays. Times are
the best of several.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.harness import MIB, Figure, Result, bars, best, memory
from getd.datasets.load import load
from getd.facts.known_answers import KnownAnswers

ARITY, REPEATS = 4, 7

# Resident memory is measured in a process of its own: importing does not count, loading does.
_MEMORY = """
import sys
import getd.datasets.load, getd.facts.known_answers, numpy, polars
polars.read_csv(b"a\\tb\\n", separator="\\t", has_header=False)
def work():
    global kb
    kb = getd.datasets.load.load(sys.argv[1])
def check(_):
    assert sum(map(len, kb.split("train").values())) == int(sys.argv[2])
"""


@dataclass(frozen=True)
class Sizes:
    """How much is generated."""

    facts: int = 1_000_000
    entities: int = 100_000
    relations: int = 500


def generate(folder: Path, sizes: Sizes) -> tuple[Path, np.ndarray]:
    """A folder with one TSV file of random distinct facts, and their numbers."""
    rng = np.random.default_rng(0)
    popular = (sizes.entities * rng.random((sizes.facts, ARITY)) ** 2).astype(
        np.int64
    )  # few are in many facts
    table = np.unique(
        np.column_stack([rng.integers(0, sizes.relations, sizes.facts), popular]), axis=0
    )
    rng.shuffle(table)
    entity = pl.Series([f"entity/{i:06d}" for i in range(sizes.entities)])
    relation = pl.Series([f"relation.{i:03d}" for i in range(sizes.relations)])
    columns = [relation.gather(table[:, 0]).alias("r")]
    columns += [entity.gather(table[:, j + 1]).alias(f"e{j}") for j in range(ARITY)]
    pl.DataFrame(columns).write_csv(folder / "train.tsv", separator="\t", include_header=False)
    return folder / "train.tsv", table


def measure(quick: bool = False) -> Result:
    """Read, index, weigh; the facts that were read and some answers of the index are checked."""
    repeats = 1 if quick else REPEATS
    with tempfile.TemporaryDirectory() as name:
        path, table = generate(Path(name), Sizes(2000, 500, 20) if quick else Sizes())
        kb = load(path.parent)
        facts = kb.split("train")[ARITY]
        entities = np.array([int(label[-6:]) for label in kb.entities])
        relations = np.array([int(label[-3:]) for label in kb.relations])
        assert np.array_equal(relations[facts.relation], table[:, 0])
        assert np.array_equal(entities[facts.entities], table[:, 1:])

        read_csv, read = best(
            lambda: pl.read_csv(
                path, separator="\t", has_header=False, quote_char=None, infer_schema=False
            ),
            lambda: load(path.parent),
            repeats=repeats,
        )
        lexsort, index = best(
            lambda: np.lexsort([facts.relation, *facts.entities.T]),
            lambda: KnownAnswers.build([{ARITY: facts}]),
            repeats=repeats,
        )
        check_index(KnownAnswers.build([{ARITY: facts}]), facts.rows())
        used = memory(_MEMORY, name, str(len(table)))
    encoded = len(table) * (ARITY + 1) * 8
    seconds = {
        "polars.read_csv": read_csv,
        "read and encode": read,
        "np.lexsort": lexsort,
        "index, all slots": index,
    }
    sizes = {"encoded": encoded, "peak growth": used.growth, "kept": used.kept}
    return Result(
        name="facts",
        figures=[
            Figure("reading and encoding over polars.read_csv", read / read_csv, "x", 8),
            Figure("index of known answers over np.lexsort", index / lexsort, "x", 8),
            Figure("peak memory of loading over the encoded facts", used.growth / encoded, "x", 6),
            Figure("facts read and encoded", len(table) / read, "facts/s"),
        ],
        plots=[
            bars(f"{len(table):,} facts, time", "seconds", seconds),
            bars(
                f"{len(table):,} facts, memory",
                "MiB",
                {key: value / MIB for key, value in sizes.items()},
            ),
        ],
        details={"facts": len(table), "seconds": seconds, "bytes": sizes},
        packages=("getd", "numpy", "polars"),
    )


def check_index(known: KnownAnswers, rows: np.ndarray) -> None:
    """The answers of some questions, against a scan of all facts."""
    for row in rows[:: len(rows) // 20]:
        for position in range(ARITY):
            others = [0, *(j + 1 for j in range(ARITY) if j != position)]
            scanned = np.unique(rows[(rows[:, others] == row[others]).all(axis=1), position + 1])
            assert np.array_equal(known.lookup(row[:1], row[None, 1:], position).values, scanned)

"""Train rows with several seeds, write each result down, and make the table of ``README.md`` anew.

    python -m experiments best/getd-jf17k-4 best/getd-jf17k-3 --seeds 0 1 2

What was measured already is left alone; a training that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from experiments.record import ROWS, record, result_path, write_table
from getd.errors import nearest
from getd.runs.folder import RunFolder


def main() -> None:
    """Parse, train, record."""
    rows = [str(path.relative_to(ROWS).with_suffix("")) for path in sorted(ROWS.rglob("*.toml"))]
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Train rows and write results down.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(rows)}; none: only the table")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where run folders are kept")
    chosen = parser.parse_args()
    for row in chosen.rows:
        if row not in rows:
            parser.error(f"no row {row!r}{nearest(row, rows)}")
    for row in chosen.rows:
        for seed in chosen.seeds:
            if not result_path(row, seed).exists():
                train(row, seed, chosen.runs / f"{row.replace('/', '-')}-seed-{seed}")
    write_table()


def train(row: str, seed: int, folder: Path) -> None:
    """Train one row with one seed, from where it stands, and write the result down."""
    command = [sys.executable, "-m", "getd", "train", "--config", str(ROWS / f"{row}.toml"), "--seed", str(seed)]
    command += ["--out", str(folder), *(["--resume"] if RunFolder(folder).exists() else [])]
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"{row}, seed {seed}: the training did not finish")
    print(record(RunFolder(folder), row))


if __name__ == "__main__":
    main()

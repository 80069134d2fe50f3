"""Runs as commands open them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from getd.cli.output import print_notices

if TYPE_CHECKING:
    from getd.run import Run


def open_run(path: Path, memory: bool = True) -> Run:
    """The run of a folder; what a user should be told about it is told."""
    from getd.run import Run

    run = Run.open(path, memory)
    print_notices(run.notices)
    return run

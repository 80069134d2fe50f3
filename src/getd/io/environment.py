"""The facts of the machine that a figure was measured on, and of the code that measured it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
GIT_SECONDS = 20  # a git that takes longer tells nothing


def machine_facts(*packages: str) -> dict[str, object]:
    """Processor, cores, threads of torch (where it is loaded), memory, system, and the versions of these packages."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None,
        "memory_gib": round(pages / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def commit_of(package: Path = PACKAGE) -> str | None:
    """The git commit of a package that runs from a checkout, with ``-changed`` where its files differ from it.

    None where its files are not under git.
    """
    if (
        _git(package, "ls-files", "--error-unmatch", "__init__.py") is None
    ):  # installed, perhaps inside another project
        return None
    commit = _git(package, "rev-parse", "HEAD")
    is_changed = _git(package, "diff", "--quiet", "HEAD", "--", ".") is None
    return f"{commit}-changed" if commit and is_changed else commit


def _git(folder: Path, *command: str) -> str | None:
    """What git says; None where it is not there or fails."""
    try:
        done = subprocess.run(
            ["git", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

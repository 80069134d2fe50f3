"""The machine and the versions that a result was made with, and the commit of the code."""

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
VERSIONS = ("getd", "numpy", "polars", "torch")  # what every result depends on
GIT_SECONDS = 20  # a slower git counts as missing
SPINS = 1000  # looks of a waiting thread at what it waits for, before it sleeps: about 20 µs


def environment() -> dict[str, Any]:
    """Describe the environment of a run, for ``environment.json``."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in VERSIONS},
    }


def machine_facts(*packages: str) -> dict[str, Any]:
    """Describe the machine of a measurement, with the versions of these packages.

    The threads are those of torch, None while torch is not loaded.
    """
    processor = platform.processor()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        match = re.search(r"^model name[^:]*:([^:\n]*)", cpu_info.read_text(), re.MULTILINE)
        processor = match[1].strip() if match else processor

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # bytes
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None,
        "memory_gib": round(memory / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }


def let_waiting_threads_sleep() -> None:
    """Let the threads of matrix products sleep while they wait; call it before torch is imported.

    They would keep a core busy for milliseconds, which other threads or programs may need: then
    every product waits for a thread that cannot run. Variables that are set already stay.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))


def commit_of(package: Path = PACKAGE) -> str | None:
    """Find the git commit of a package that runs from a checkout; None if git does not track it.

    Ends with ``-changed`` if files of the package differ from the commit.
    """
    # An installed package may lie inside the checkout of another project.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None

    commit = _git(package, "rev-parse", "HEAD")
    is_changed = _git(package, "diff", "--quiet", "HEAD", "--", ".") is None
    return f"{commit}-changed" if commit and is_changed else commit


def _git(folder: Path, *command: str) -> str | None:
    """The output of git; None if it is missing or fails."""
    try:
        output = subprocess.check_output(
            ["git", *command], cwd=folder, stderr=subprocess.DEVNULL, text=True, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return output.strip()

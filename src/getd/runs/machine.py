"""The facts of the machine that a figure was measured on."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path


def machine_facts(*packages: str) -> dict[str, object]:
    """Processor, cores, threads of torch (where it is loaded), memory, system, and the versions of these packages."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
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

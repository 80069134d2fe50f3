"""Other machines' arithmetic on this one: the environment variables that choose how numbers are
computed.

A library picks its kernels by the CPU: the vectors' width decides in which order a sum is taken,
and so its last bit. These settings make this CPU compute as another would. ``python -m
tests.machines.probe`` shows which of them act here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

Environment = dict[str, str]

SHIM = (
    "int mkl_serv_intel_cpu(void) { return 1; }\nint mkl_serv_intel_cpu_true(void) { return 1; }\n"
)


def numpy_features() -> str:
    """The instruction sets that NumPy may use here beyond its baseline."""
    config = np.show_config(mode="dicts")
    assert config is not None
    return " ".join(config["SIMD Extensions"].get("found", []))


def intel_shim(folder: Path) -> Environment:
    """Make MKL take the CPU for one of Intel's, whose kernels it otherwise withholds; nothing
    without a C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return {}

    source = folder / "intel.c"
    library = folder / "intel.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library)}


def is_intel() -> bool:
    """Whether this CPU is one of Intel's, where Linux says so."""
    about = Path("/proc/cpuinfo")
    return about.exists() and "GenuineIntel" in about.read_text(encoding="utf-8", errors="replace")


def sse() -> Environment:
    """A CPU without AVX."""
    return {
        "ATEN_CPU_CAPABILITY": "default",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "NPY_DISABLE_CPU_FEATURES": numpy_features(),
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
    }


def avx2() -> Environment:
    """A CPU without AVX-512."""
    return {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    }


def machines(folder: Path) -> dict[str, Environment]:
    """The machines that the numeric tests are run as, by name; ``folder`` keeps what has to be
    built for them.
    """
    one = {"OMP_NUM_THREADS": "1"}
    two = {
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
    }  # a thread that waits leaves the CPU to other runs
    intel = intel_shim(folder)

    environments = {
        "this CPU, 2 threads": two,
        "ATen avx2, 2 threads": {"ATEN_CPU_CAPABILITY": "avx2"} | two,
        "SSE, MKL compatible, 1 thread": sse() | {"MKL_CBWR": "COMPATIBLE"} | one,
        "Intel SSE4.2, 2 threads": sse() | intel | two,
        "Intel AVX2, 1 thread": avx2() | intel | one,
        "Intel AVX-512, 1 thread": intel | one,
    }
    if is_intel():  # where that is this CPU with 1 thread, which the suite itself runs as
        del environments["Intel AVX-512, 1 thread"]
    return environments


def as_machine(environment: Environment) -> Environment:
    """The environment of a process that computes as that machine does."""
    return os.environ | environment

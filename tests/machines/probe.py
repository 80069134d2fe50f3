"""Which environment variables change results on this CPU.

    python -m tests.machines.probe

Computes the same products, sums and functions in a process for each setting, and prints the
operations whose bits are not those of a process without it (one thread in both). A setting with
nothing beside it does not act here.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tests.machines.environments import (
    Environment,
    as_machine,
    avx2,
    intel_shim,
    numpy_features,
    sse,
)

ROWS = (1, 2, 3, 5, 64)
CANDIDATES = (50, 51, 53, 1001)
DIMS = (7, 20, 200)
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def settings(folder: Path) -> list[Environment]:
    """The settings to try: each variable alone, then with an MKL that takes the CPU for one of
    Intel's.
    """
    values = {
        "ATEN_CPU_CAPABILITY": ("default", "avx2", "avx512"),
        "ONEDNN_MAX_CPU_ISA": ("SSE41", "AVX", "AVX2", "AVX512_CORE"),
        "MKL_ENABLE_INSTRUCTIONS": ("SSE4_2", "AVX2", "AVX512"),
        "MKL_DEBUG_CPU_TYPE": ("5",),
        "MKL_CBWR": ("COMPATIBLE", "SSE4_2", "AVX2", "AVX512"),
        "OPENBLAS_CORETYPE": ("Prescott", "Nehalem", "Haswell", "Zen", "SkylakeX"),
        "NPY_DISABLE_CPU_FEATURES": (numpy_features(),),
        "GLIBC_TUNABLES": ("glibc.cpu.hwcaps=-AVX512F", sse()["GLIBC_TUNABLES"]),
        "OMP_NUM_THREADS": ("2",),
    }
    alone = [{name: value} for name, choices in values.items() for value in choices]

    intel = intel_shim(folder)
    instructions = [
        {"MKL_ENABLE_INSTRUCTIONS": value} for value in values["MKL_ENABLE_INSTRUCTIONS"]
    ]
    as_intel = [intel, *[intel | instruction for instruction in instructions]] if intel else []
    return [*alone, *as_intel, avx2(), sse()]


class Inputs:
    """Numbers that are the same on every machine: whole ones and a division, whose rounding IEEE
    754 fixes.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, *shape: int) -> Tensor:
        return torch.randint(-(2**20), 2**20, shape, generator=self.generator).to(self.dtype) / (
            3 * 2**18
        )


def operations(dtype: torch.dtype) -> dict[str, Callable[[], Iterable[Tensor]]]:
    """What is computed, by name."""
    inputs = Inputs(dtype)
    table = inputs(33, 1001)

    def products(rows: int) -> list[Tensor]:
        return [inputs(rows, dim) @ inputs(n, dim).T for n in CANDIDATES for dim in DIMS]

    return {f"mm {rows}": partial(products, rows) for rows in ROWS} | {
        "bmm": lambda: [inputs(9, 20, 20) @ inputs(9, 20, 20)],
        "einsum": lambda: [
            torch.einsum("br,rde,bd->be", inputs(9, 5), inputs(5, 20, 21), inputs(9, 20))
        ],
        "exp": lambda: [table.exp()],
        "log": lambda: [table.abs().add(1).log()],
        "tanh": lambda: [table.tanh(), table.sigmoid()],
        "logsumexp": lambda: [table.logsumexp(1)],
        "log_softmax": lambda: [table.log_softmax(1)],
        "sum": lambda: [table.sum(), table.sum(0), table.sum(1), table.norm(dim=1)],
        "batch_norm": lambda: [functional.batch_norm(table, None, None, training=True)],
        "conv2d": lambda: [functional.conv2d(inputs(7, 1, 10, 20), inputs(16, 1, 3, 3))],
        "svd": lambda: [torch.linalg.svdvals(inputs(30, 20))],
        "randn": lambda: [
            torch.randn(33, 100, dtype=dtype, generator=torch.Generator().manual_seed(0))
        ],
    }


def outside_torch() -> dict[str, np.ndarray]:
    """The same for NumPy and for Python's own functions."""
    table = Inputs(torch.float64)(33, 200).numpy()
    values = table.ravel().tolist()
    return {
        "numpy matmul": table @ table.T,
        "numpy svd": np.linalg.svd(table, compute_uv=False),
        "numpy exp": np.exp(table),
        "numpy sum": table.sum(0),
        "math": np.array([f(value) for value in values for f in (math.exp, math.sin, math.tanh)]),
    }


def fingerprint(arrays: Iterable[np.ndarray]) -> str:
    """A name for the bits of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def fingerprints() -> dict[str, str]:
    """The bits of every operation, as this process computes them."""
    bits = {}
    for dtype_name, dtype in DTYPES.items():
        for name, compute in operations(dtype).items():
            bits[f"{name} {dtype_name}"] = fingerprint(result.numpy() for result in compute())
    for name, array in outside_torch().items():
        bits[name] = fingerprint([array])
    return bits


def fingerprints_under(environment: Environment) -> dict[str, str]:
    """The bits of every operation in a process of its own with these variables set."""
    command = [sys.executable, "-m", "tests.machines.probe", "--bits"]
    environment = as_machine({"OMP_NUM_THREADS": "1"} | environment)
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    bits: dict[str, str] = json.loads(done.stdout)
    return bits


def main() -> None:
    """Print what each setting changes."""
    if "--bits" in sys.argv:
        print(json.dumps(fingerprints()))
        return

    usual = fingerprints_under({})
    with tempfile.TemporaryDirectory() as folder:
        for environment in settings(Path(folder)):
            bits = fingerprints_under(environment)
            changed = [name for name in usual if bits[name] != usual[name]]

            setting = " ".join(f"{name}={Path(value).name}" for name, value in environment.items())
            print(f"{setting}\n    {', '.join(changed) or 'nothing'}", flush=True)


if __name__ == "__main__":
    main()

"""Which numbers products of queries and candidates multiply: fp32, or bf16 on fast machines.

Only products are rounded: queries, memories, sums and ranks stay in fp32.
"""

import json
import os
import time
from contextlib import suppress
from typing import Literal

import torch
from torch import Tensor

from getd.choices import Precision
from getd.errors import WriteError, check_choice
from getd.io.atomic import atomic_path
from getd.io.environment import machine_facts
from getd.io.user_cache import user_cache
from getd.models.base import DotProductModel, ScoringModel

Settled = Literal["fp32", "bf16"]  # what auto means on a machine
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "auto")
MIN_TABLE = 1 << 15  # numbers in the table of candidates: with fewer, rounding costs more
MIN_DIM = 40  # of the vectors to score with: with fewer, products are a small part of the time
MIN_SPEEDUP = 1.25  # of products in bf16, for them to be chosen
SHAPE = (256, 64, 4096)  # of the measured products: questions, dimensions, candidates
REPEATS = 7


def dot_product_of(model: ScoringModel) -> DotProductModel | None:
    """Return the trained model if its scores are dot products, with or without a memory."""
    bare = model.bare
    return bare if isinstance(bare, DotProductModel) and bare.is_dot_product else None


def settle_precision(precision: Precision, model: ScoringModel) -> Settled:
    """Settle how the scores of a model are computed on this machine.

    Models whose scores are no dot products always score in fp32.
    """
    check_choice("precision", precision, PRECISIONS)
    bare = dot_product_of(model)
    if bare is None:
        return "fp32"
    if precision != "auto":
        return precision
    table = bare.candidates(0)
    is_large = table.numel() >= MIN_TABLE and table.shape[1] >= MIN_DIM
    return "bf16" if is_large and is_bf16_faster(table.device) else "fp32"


def rounded(table: Tensor, precision: Settled) -> Tensor:
    """Return the vectors of candidates as their products need them."""
    return table.to(torch.bfloat16) if precision == "bf16" else table


def multiply(queries: Tensor, table: Tensor, out: Tensor) -> Tensor:
    """Write the scores of candidates, ``(b, n)``, into ``out``; a table in bf16 rounds them.

    >>> query, table = torch.tensor([[1.0]]), torch.tensor([[1.001], [3.0]])
    >>> multiply(query, rounded(table, "fp32"), torch.empty(1, 2))
    tensor([[1.0010, 3.0000]])
    >>> multiply(query, rounded(table, "bf16"), torch.empty(1, 2))
    tensor([[1., 3.]])
    """
    if table.dtype == out.dtype:
        return torch.mm(queries, table.t(), out=out)
    return out.copy_(queries.to(table.dtype) @ table.t())


def is_bf16_faster(device: torch.device) -> bool:
    """Whether products in bf16 are clearly faster; measured once for each machine."""
    if not has_bf16(device):
        return False
    if device.type == "cuda":
        return True

    # What decides the speed: the processor, how torch uses it, and with how many threads.
    facts = machine_facts("torch")
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    torch_version = facts["versions"]["torch"]
    key = f"{facts['processor']}, torch {torch_version}, {facts['threads']}, {limit}"
    path = user_cache("bf16.json")
    measured: dict[str, float] = {}
    with suppress(OSError, ValueError):
        measured = dict(json.loads(path.read_text(encoding="utf-8")))

    speedup = measured.get(key)
    if not isinstance(speedup, float):
        speedup = measure_speedup()
        with suppress(OSError, WriteError), atomic_path(path) as temporary:
            temporary.write_text(json.dumps({**measured, key: speedup}), encoding="utf-8")
    return speedup >= MIN_SPEEDUP


def measure_speedup() -> float:
    """Return how much faster the products of a step of the loss are in bf16; takes 50 ms."""
    b, d, n = SHAPE
    query = torch.ones(b, d)
    table = torch.ones(n, d)
    seconds = []
    for dtype in (torch.float32, torch.bfloat16):
        factors = (query.to(dtype), table.to(dtype))
        seconds.append(min(_time_products(*factors) for _ in range(REPEATS)))
    return seconds[0] / seconds[1]


def _time_products(query: Tensor, table: Tensor) -> float:
    start = time.perf_counter()
    scores = query @ table.T
    scores @ table
    scores.T @ query
    return time.perf_counter() - start


def has_bf16(device: torch.device) -> bool:
    """Whether the processor has instructions for bf16; torch can always emulate them."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return any(value for name, value in capabilities.items() if name.endswith("bf16"))

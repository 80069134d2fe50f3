"""Which numbers a training multiplies: fp32, or bf16 on machines that are faster with it.

Only products are rounded: parameters, norms, sums, the optimiser and evaluation stay in fp32.
"""

import json
import os
import time
from contextlib import suppress
from typing import Literal

import torch
from torch import Tensor

from getd.errors import WriteError
from getd.io.atomic import atomic_path
from getd.io.environment import machine_facts
from getd.io.user_cache import user_cache
from getd.models.base import DotProductModel, ScoringModel
from getd.runs.config import TrainSettings

MIN_TABLE = 1 << 15  # numbers in the table of candidates: with fewer, rounding costs more
MIN_SPEEDUP = 1.25  # of products in bf16, for them to be chosen
SHAPE = (256, 64, 4096)  # of the measured products: questions, dimensions, candidates
REPEATS = 7


def choose_precision(
    settings: TrainSettings, model: ScoringModel, device: torch.device
) -> Literal["fp32", "bf16"]:
    """Settle what ``auto`` means for a training on this machine."""
    if settings.precision != "auto":
        return settings.precision
    is_fused = settings.kvsall_loss in ("softmax", "each-answer")
    if not is_fused or not isinstance(model, DotProductModel):
        return "fp32"

    # Only candidates that all questions of a batch share are multiplied with them at once.
    n_candidates, dim = model.candidates(0).shape
    if settings.regime == "sampled":
        n_candidates = min(n_candidates, settings.negatives) if settings.shared_negatives else 0
    is_large = n_candidates * dim >= MIN_TABLE
    return "bf16" if is_large and is_bf16_faster(device) else "fp32"


def is_bf16_faster(device: torch.device) -> bool:
    """Whether products in bf16 are clearly faster; measured once for each machine."""
    if not _has_bf16(device):
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


def _has_bf16(device: torch.device) -> bool:
    """Whether the processor has instructions for bf16; torch can always emulate them."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return any(value for name, value in capabilities.items() if name.endswith("bf16"))

"""Settings of ``[training]`` that a model begins with where they are not those of all."""

from __future__ import annotations

from typing import Any

DISTANCES = {
    "regime": "sampled",
    "sampled_loss": "softmax",
    "negatives": 512,
}  # 1vsall would not be cheap
PRODUCTS = {"learning_rate": 0.01}  # of small numbers: slow to leave the start
DEFAULTS: dict[str, dict[str, Any]] = {
    "distmult": PRODUCTS,
    "simple": PRODUCTS,
    "complex": PRODUCTS,
    "hype": PRODUCTS,
    "transe": DISTANCES,
    "m-transh": DISTANCES,
    "rae": DISTANCES,
    "nalp": {"regime": "sampled", "negatives": 64, "validation_sample": 300},
}

"""All regimes by name."""

from __future__ import annotations

from getd.training.batches import Regime
from getd.training.kvs_all import KvsAll
from getd.training.one_vs_all import OneVsAll
from getd.training.sampled import Sampled

REGIMES: dict[str, type[Regime]] = {"1vsall": OneVsAll, "kvsall": KvsAll, "sampled": Sampled}

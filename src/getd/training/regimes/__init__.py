"""All regimes by name: a regime is one file and one line here."""

from __future__ import annotations

from getd.training.regimes.base import Regime
from getd.training.regimes.kvs_all import KvsAll
from getd.training.regimes.one_vs_all import OneVsAll
from getd.training.regimes.sampled import Sampled

REGIMES: dict[str, type[Regime]] = {"1vsall": OneVsAll, "kvsall": KvsAll, "sampled": Sampled}

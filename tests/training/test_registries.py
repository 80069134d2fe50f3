"""Every name that a setting accepts has its loss, regime or optimiser, and no other has one."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import pytest

from getd.runs.config import TrainSettings
from getd.training.losses import KVSALL_LOSSES, SAMPLED_LOSSES
from getd.training.optimisers import ROW_OPTIMISERS
from getd.training.regimes import REGIMES

REGISTRIES: dict[str, Collection[str]] = {
    "regime": REGIMES,
    "optimizer": ROW_OPTIMISERS,
    "kvsall_loss": KVSALL_LOSSES,
    "sampled_loss": SAMPLED_LOSSES,
}


@pytest.mark.parametrize("setting", REGISTRIES)
def test_the_names_of_a_setting_are_those_of_its_registry(setting: str) -> None:
    names = get_args(TrainSettings.model_fields[setting].annotation)
    assert list(names) == list(REGISTRIES[setting])

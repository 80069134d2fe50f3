"""Dropout keeps the mean, and acts in training alone."""

from __future__ import annotations

import torch

from getd.models.inputs import NormDropout


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    part, ones = NormDropout(50, batch_norm=False, dropout=0.3), torch.ones(400, 5, 50)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = part.train()(ones)
    assert torch.allclose(dropped[dropped != 0], torch.tensor(1 / 0.7))
    assert abs((dropped == 0).float().mean().item() - 0.3) < 0.01
    assert torch.equal(part.eval()(ones), ones)

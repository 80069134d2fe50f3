"""Dropout keeps the mean, and acts in training alone; norms of positions are their own."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from getd.models.base import ModelSizes
from getd.models.layers import NormDropout, PositionNormDropout
from getd.models.registry import make_model, model_settings


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    part, ones = NormDropout(50, "none", dropout=0.3), torch.ones(400, 5, 50)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = part.train()(ones)
    assert torch.allclose(dropped[dropped != 0], torch.tensor(1 / 0.7))
    assert abs((dropped == 0).float().mean().item() - 0.3) < 0.01
    assert torch.equal(part.eval()(ones), ones)


@pytest.mark.parametrize("name", ["getd", "n-tucker"])
def test_dropout_on_the_core_acts_in_training_alone(name: str) -> None:
    settings = model_settings(name, {"entity_dim": 4, "norm": "none", "core_dropout": 0.5})
    model = make_model(name, settings, ModelSizes(9, 2, [3]), torch.Generator().manual_seed(0))
    relation, entities = torch.tensor([0, 1]), torch.tensor([[1, 2, 3], [4, 5, 6]])
    scores = [model.train().score_candidates(relation, entities, 0) for _ in range(2)]
    assert not torch.allclose(*scores)
    scores = [model.eval().score_candidates(relation, entities, 0) for _ in range(2)]
    assert torch.equal(*scores)


def test_each_position_is_normalised_by_itself() -> None:
    vectors = (
        torch.randn(64, 3, 5, generator=torch.Generator().manual_seed(0))
        * torch.tensor([1.0, 5.0, 20.0])[:, None]
    )
    norm = PositionNormDropout(3, 5, "batch", dropout=0.0).train()
    done = norm(vectors, [0, 1, 2])
    assert_close(done.std(dim=0, correction=0), torch.ones(3, 5), atol=1e-3, rtol=0)
    alone = NormDropout(5, "batch", dropout=0.0).train()
    assert_close(norm(vectors[:, 1:2], [1])[:, 0], alone(vectors[:, 1]))

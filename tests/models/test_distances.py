"""Models that score a distance: a norm has no gradient at zero, and must not make NaN there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from getd.models.base import ModelSizes, ScoringModel
from getd.models.rae import MTransH, MTransHSettings
from getd.models.transe import TransE, TransESettings


def transe(p: int) -> TransE:
    """With a distance of zero between an entity and itself."""
    model = TransE(
        ModelSizes(9, 2, (2,)), TransESettings(entity_dim=5, p=p), torch.Generator().manual_seed(0)
    ).double()
    torch.nn.init.zeros_(model.relation.weight)
    return model


def m_transh(p: int) -> MTransH:
    """The same."""
    settings = MTransHSettings(entity_dim=5, initial_scale=1, p=p)
    model = MTransH(ModelSizes(9, 2, (2,)), settings, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        model.relation.weight.zero_()
        model.share.weight.copy_(torch.tensor([1.0, -1.0]))
    return model


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("make", [transe, m_transh])
def test_gradients_are_finite_where_the_distance_is_zero(
    make: Callable[[int], ScoringModel], p: int
) -> None:
    model, relation, entities = make(p), torch.tensor([0, 1]), torch.tensor([[3, 3], [4, 4]])
    shared = torch.tensor([[3, 4, 1], [3, 4, 1]])
    scores, shared_scores = model.score_positions(relation, entities, entities.unsqueeze(2), shared)
    assert_close(scores.squeeze(2), torch.zeros(2, 2, dtype=torch.float64))
    (scores.sum() + shared_scores.sum() + model.score_relations(entities).sum()).backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert parameter.grad.to_dense().isfinite().all()

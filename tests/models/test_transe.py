"""TransE: what a distance needs, apart from the laws of all models."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import getd.models.transe
from getd.models.base import ModelSizes
from getd.models.transe import TransE, TransESettings


def make(**settings: object) -> TransE:
    return TransE(
        ModelSizes(9, 2, (2,)),
        TransESettings(entity_dim=5, **settings),
        torch.Generator().manual_seed(0),
    ).double()


@pytest.mark.parametrize("p", [1, 2])
def test_facts_of_an_entity_with_itself_have_one_score(p: int) -> None:
    """So TransE is not fully expressive: such a relation holds for all entities or for none."""
    model, entities = make(p=p), torch.arange(9).unsqueeze(1).expand(9, 2)
    scores = model.score_candidates(torch.zeros(9, dtype=torch.long), entities, 1, entities[:, :1])
    assert_close(scores, -model.relation.weight[0].norm(p).expand(9, 1))


def test_entities_of_unit_length_ignore_how_long_their_vectors_are() -> None:
    model, relation, entities = (
        make(unit_entities=True),
        torch.tensor([0, 1]),
        torch.tensor([[3, 5], [4, 1]]),
    )
    before = model.score_candidates(relation, entities, 1)
    with torch.no_grad():
        model.entity.weight *= torch.arange(1, 10).unsqueeze(1)
    assert_close(model.score_candidates(relation, entities, 1), before)


def test_candidates_of_their_own_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    model, relation, entities = make(), torch.tensor([0, 1]), torch.tensor([[3, 5], [4, 1]])
    own = torch.arange(8).view(2, 4)
    whole = model.score_candidates(relation, entities, 0, own)
    monkeypatch.setattr(getd.models.transe, "BUDGET", 1)
    assert torch.equal(model.score_candidates(relation, entities, 0, own), whole)

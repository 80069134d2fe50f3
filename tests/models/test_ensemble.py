"""An ensemble scores as its members do on average."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from getd.models.base import ModelSizes
from getd.models.ensemble import Ensemble
from getd.models.registry import make_model, model_settings


def test_scores_are_the_mean_of_the_members_scores() -> None:
    settings = model_settings("n-cp", {"entity_dim": 4})
    members = [
        make_model(
            "n-cp", settings, ModelSizes(6, 2, (3,)), torch.Generator().manual_seed(seed)
        ).eval()
        for seed in range(3)
    ]
    together = Ensemble(members).eval()
    relation, entities = torch.tensor([0, 1]), torch.tensor([[0, 1, 2], [3, 4, 5]])
    for candidates in (None, torch.tensor([4, 0])):
        scores = [member.score_candidates(relation, entities, 1, candidates) for member in members]
        expected = (scores[0] + scores[1] + scores[2]) / 3
        assert_close(together.score_candidates(relation, entities, 1, candidates), expected)
    assert (together.n_entities, together.n_relations, together.arities) == (6, 2, (3,))

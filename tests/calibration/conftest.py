"""A model on the demo that is not trained."""

from __future__ import annotations

import pytest
import torch

import getd
from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ModelSizes
from getd.models.getd import GETD, GETDSettings


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return getd.load("demo")


@pytest.fixture(scope="module")
def model(kb: KnowledgeBase) -> GETD:
    untrained = GETD(
        ModelSizes(kb.n_entities, kb.n_relations, kb.arities),
        GETDSettings(entity_dim=6, ring_ranks=3, initial_scale=1.0),
        torch.Generator().manual_seed(0),
    )
    return untrained.eval()

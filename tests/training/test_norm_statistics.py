"""Batch norms are evaluated with the statistics of training facts under the evaluated weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from getd.facts.knowledge_base import KnowledgeBase
from getd.models.base import ScoringModel
from getd.models.multilinear import MultilinearModel
from getd.models.norms import batch_norms
from getd.runs.config import Config
from getd.training.norm_statistics import SAMPLE, take_statistics
from getd.training.start import trainer_of


@pytest.fixture(scope="module")
def one_relation() -> KnowledgeBase:
    """Facts whose relation says nothing: one for each arity."""
    rng = np.random.default_rng(0)
    facts = [("of", f"a{a}", f"b{b}", f"c{(a + b) % 7}") for a, b in rng.integers(0, 12, (150, 2))]
    return KnowledgeBase.from_facts(facts)


def config(**training: object) -> Config:
    model = {"name": "getd", "entity_dim": 6, "ring_ranks": 3, "norm": "batch"}
    chosen = {"epochs": 12, "learning_rate": 0.02, **training}
    return Config.parse({"model": model, "training": chosen})


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_validation_sees_the_statistics_of_the_weights_that_it_evaluates(
    one_relation: KnowledgeBase, ema: float
) -> None:
    distances = []

    def validate(model: ScoringModel) -> float:
        assert isinstance(model, MultilinearModel)
        kept = batch_norms(model)[0].running_mean
        assert kept is not None
        distances.append(float((kept - model.relation.weight[0].detach()).abs().max()))
        return len(distances) / 100

    with trainer_of(one_relation, config(ema=ema)) as trainer:
        trainer.validate = validate
        trainer.train()
    assert len(distances) == 12
    assert max(distances) < 1e-5

    validate(trainer.model)
    assert distances[-1] < 1e-5


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_training_without_validation_ends_with_the_statistics_of_its_last_weights(
    one_relation: KnowledgeBase, ema: float
) -> None:
    alone = one_relation.with_splits(train=one_relation.split("train"))
    with trainer_of(alone, config(ema=ema)) as trainer:
        trainer.train()
    model = trainer.model
    assert isinstance(model, MultilinearModel)
    assert_close(
        batch_norms(model)[0].running_mean, model.relation.weight[0].detach(), rtol=0, atol=1e-5
    )


def test_many_facts_are_sampled_and_the_same_ones_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    facts = [("of", f"a{a}", f"b{b}") for a, b in rng.integers(0, 900, (SAMPLE + 2000, 2))]
    kb = KnowledgeBase.from_facts({"train": facts})
    seen: list[torch.Tensor] = []
    with trainer_of(kb, config()) as trainer:
        monkeypatch.setattr(
            trainer.model, "pass_through", lambda relation, entities: seen.append(entities)
        )
        monkeypatch.setattr(trainer.model, "relation_query", lambda entities: None)
        for _ in range(2):
            take_statistics(trainer.model, kb.split("train"), 0, torch.device("cpu"))
    first, second = torch.cat(seen).chunk(2)
    assert len(first) == SAMPLE
    assert torch.equal(first, second)
    assert len(first[:, 0].unique()) > 800  # from all over


def test_the_query_for_a_relation_has_statistics_too_and_leaves_those_of_entities_alone() -> None:
    facts = [("of", f"a{a}", f"b{a % 5}", f"c{a % 3}") for a in range(40)]
    kb = KnowledgeBase.from_facts({"train": facts})
    with trainer_of(kb, config()) as trainer:
        model = trainer.model
        assert isinstance(model, MultilinearModel)
        take_statistics(model, kb.split("train"), 0, torch.device("cpu"))
        norms = model.eval().norms["3"]
        entities = torch.tensor(kb.split("train")[3].entities)
        assert_close(
            norms.entity.norm.running_mean, model.entity(entities).mean(dim=(0, 1)).detach()
        )  # type: ignore[union-attr]
        queries = model.relation_query(entities).detach()
    assert_close(queries.mean(dim=0), torch.zeros(6), rtol=0, atol=1e-4)
    assert_close(queries.std(dim=0), torch.ones(6), rtol=0, atol=0.01)


def test_a_training_of_one_relation_does_not_fall_back(one_relation: KnowledgeBase) -> None:
    mrrs = []
    with trainer_of(one_relation, config(epochs=30, patience=0)) as trainer:
        validate = trainer.validate
        assert validate is not None
        trainer.validate = lambda model: mrrs.append(validate(model)) or mrrs[-1]  # type: ignore[func-returns-value]
        trainer.train()
    falls = [max(mrrs[:epoch]) - mrrs[epoch] for epoch in range(5, len(mrrs))]
    assert max(mrrs) > 0.3
    assert max(falls) < 0.1

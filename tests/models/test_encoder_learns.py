"""What the encoder must be able to learn, whatever the arity."""

from __future__ import annotations

import numpy as np
import pytest

from getd import Callbacks, Config, KnowledgeBase
from getd.facts.facts import Facts
from getd.training.defaults import fill_in
from getd.training.start import trainer_of


def classes(arity: int, n: int = 150) -> KnowledgeBase:
    """Facts of four hidden classes; each column names the class, now and then wrongly."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 4, n)
    shown = np.where(rng.random((n, arity)) < 0.9, hidden[:, None], rng.integers(0, 4, (n, arity)))
    facts = [("r", *(f"{column}-{name}" for column, name in enumerate(row))) for row in shown]
    return KnowledgeBase.from_facts({"train": facts[:100], "valid": facts[100:]})


@pytest.mark.parametrize("kind", ["deepsets", "attention"])
@pytest.mark.parametrize("arity", [2, 30])
def test_positions_of_long_facts_get_queries_of_their_own(kind: str, arity: int) -> None:
    """Before any training, a query depends on the open position as much as for short facts."""
    kb = classes(arity)
    tables = {"model": {"name": "encoder", "kind": kind}, "training": {"epochs": 1}}
    with trainer_of(kb, fill_in(Config.parse(tables), kb)) as trainer:
        facts = Facts.to_tensors(kb.split("train")[arity])
        trainer.model.eval()
        queries = trainer.model.queries(*facts).detach()

    by_position = queries.mean(dim=0).std(dim=0).norm()
    assert by_position > 0.1 * queries.norm(dim=2).mean()


@pytest.mark.parametrize("arity", [3, 20])
def test_columns_that_agree_are_learnt_however_many_there_are(arity: int) -> None:
    kb = classes(arity)
    mrrs = []
    epochs = 800 // (100 * arity // 64 + 1)
    tables = {"model": {"name": "encoder"}, "training": {"epochs": epochs, "threads": 1}}
    with trainer_of(kb, fill_in(Config.parse(tables), kb)) as trainer:
        trainer.train(None, Callbacks(on_epoch=lambda epoch: mrrs.append(epoch.valid_mrr)))
    assert max(mrrs) > 0.75

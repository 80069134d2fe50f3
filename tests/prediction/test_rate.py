"""Facts with a replaced entity look like mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import getd
from getd.facts.knowledge_base import KnowledgeBase
from tests.prediction.named_facts import every_fact


def test_replaced_entities_are_suspicious(tmp_path: Path) -> None:
    kb = getd.load("demo")
    rng = np.random.default_rng(0)
    every = set(every_fact(kb))
    splits: dict[str, list[tuple[str, ...]]] = {}
    for split, blocks in kb.splits.items():
        splits[split] = [fact for block in blocks.values() for fact in kb.decode(block)]

    wrong = set()
    for row in rng.choice(len(splits["train"]), 40, replace=False).tolist():
        fact = list(splits["train"][row])
        fact[int(rng.integers(1, len(fact)))] = kb.entities[int(rng.integers(kb.n_entities))]
        if tuple(fact) not in every:
            splits["train"][row] = tuple(fact)
            wrong.add(tuple(fact))
    config = {
        "model": {"entity_dim": 16, "ring_ranks": 8},
        "training": {"epochs": 8, "learning_rate": 0.02},
    }
    run = getd.train(KnowledgeBase.from_facts(splits), out=tmp_path / "run", config=config)
    suspects = [rating.fact for rating in run.suspicious(2 * len(wrong))]
    names = {(label.split("(")[0], *entities) for label, *entities in suspects}
    assert len(names & wrong) / len(wrong) >= 0.6

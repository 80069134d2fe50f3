"""Facts with a replaced entity look like mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import getd
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.memory.with_memory import WithMemory
from getd.prediction.answer import Answerer
from getd.prediction.rate import rate
from getd.run import Run
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


def test_a_training_fact_is_rated_as_if_the_memory_had_not_counted_it(small: Run) -> None:
    weights = SourceWeights(share=-2.0, log_share=3.0)
    train = small.kb.split("train")[3]

    def remembering(facts: Facts) -> Answerer:
        memory = Memory.from_facts({3: facts}, small.kb.n_entities)
        by_position = {
            f"3-{position}": MemoryWeights(
                sources=dict.fromkeys(memory.sources(3, position), weights)
            )
            for position in range(3)
        }
        model = WithMemory(small.model, memory, by_position).eval()
        return replace(small.predictor.answerer, model=model)

    ratings = rate(remembering(train), train)
    for row, rating in enumerate(ratings):
        without = remembering(train.take(np.arange(len(train)) != row))
        (expected,) = rate(
            replace(without, kb=small.kb.with_splits(train={})), train.take(slice(row, row + 1))
        )
        assert rating.ranks == expected.ranks
        assert rating.plausibility == pytest.approx(expected.plausibility, rel=1e-5)

    # Others are rated with all that was counted.
    mixed = join({3: train}, {3: small.kb.split("valid")[3]})[3]
    others = rate(remembering(train), small.kb.split("valid")[3])
    both = rate(remembering(train), mixed)
    assert [rating.ranks for rating in both] == [rating.ranks for rating in ratings + others]

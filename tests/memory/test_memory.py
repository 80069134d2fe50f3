"""Memory against nested loops, in every form of candidates, and as evaluation sees it."""

from __future__ import annotations

from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import getd
from getd.api import open_run
from getd.errors import FactError, RunError
from getd.evaluation.evaluate import evaluate
from getd.facts.facts import Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import fit_weights
from getd.memory.memory import (
    CO_OCCURRENCE,
    EPSILON,
    FREQUENCY,
    MIN_SHARE,
    Memory,
    kind_of,
)
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ModelSizes
from getd.models.registry import make_model, model_settings

N_ENTITIES, N_RELATIONS = 9, 3
SCALE = 1.4


def random_facts(arity: int, rows: int = 40) -> Facts:
    rng = np.random.default_rng(arity)
    return Facts(rng.integers(0, N_RELATIONS, rows), rng.integers(0, N_ENTITIES, (rows, arity)))


def remembering(arity: int) -> WithMemory:
    settings = model_settings("n-cp", {"entity_dim": 4})
    model = make_model(
        "n-cp",
        settings,
        ModelSizes(N_ENTITIES, N_RELATIONS, (arity,)),
        torch.Generator().manual_seed(0),
    )
    memory = Memory.from_facts({arity: random_facts(arity)}, N_ENTITIES)
    weights = {
        f"{arity}-{position}": MemoryWeights(
            scale=SCALE,
            sources={name: weights_of(name) for name in memory.sources(arity, position)},
        )
        for position in range(arity)
    }
    return WithMemory(model, memory, weights).double().eval()


def weights_of(source: str) -> SourceWeights:
    """Different ones for each source."""
    number = sum(map(ord, source))
    return SourceWeights(share=1.0 + number % 7, log_share=0.1 * (number % 5))


def expected(
    facts: Facts, relation: int, entities: list[int], position: int, candidate: int
) -> float:
    """What the memory adds, by going through all facts."""
    total = 0.0
    for source, counted in counted_candidates(facts, relation, entities, position):
        least = 0.0 if source == FREQUENCY else MIN_SHARE
        share = counted.count(candidate) / len(counted) if counted else 0.0
        share = share if share >= least else 0.0
        weights = weights_of(source)
        total += weights.share * share + weights.log_share * log((share + EPSILON) / EPSILON)
    return total


def counted_candidates(
    facts: Facts, relation: int, entities: list[int], position: int
) -> list[tuple[str, list[int]]]:
    """What occurs with each choice of given entities: sources, and candidates, again and again."""
    rows = [(int(r), e.tolist()) for r, e in zip(facts.relation, facts.entities, strict=True)]
    others = [j for j in range(len(entities)) if j != position]
    choices = [(), *combinations(others, 1), *combinations(others, 2)]
    if len(others) > 2:
        choices.append(tuple(others))

    counted = []
    for given in choices:
        candidates = [
            e[position]
            for r, e in rows
            if r == relation and all(e[j] == entities[j] for j in given)
        ]
        counted.append(("+".join(map(str, given)) or FREQUENCY, candidates))
        if len(given) not in (1, 2):
            continue
        key = sorted(entities[j] for j in given)
        together = [
            e[j]
            for _, e in rows
            for columns in combinations(range(len(e)), len(given))
            if sorted(e[column] for column in columns) == key
            for j in range(len(e))
            if j not in columns
        ]
        counted.append(("beside" if len(given) == 1 else "beside two", together))
    return counted


@pytest.mark.parametrize("arity", [2, 3, 4, 5])
def test_it_adds_what_going_through_all_facts_finds(arity: int) -> None:
    model, facts = remembering(arity), random_facts(arity)
    questions = facts.take(slice(0, 6))
    relation, entities = torch.tensor(questions.relation), torch.tensor(questions.entities)
    for position in range(arity):
        bare = SCALE * model.model.score_candidates(relation, entities, position)
        added = model.score_candidates(relation, entities, position) - bare
        sums = [
            [
                expected(facts, int(relation[i]), entities[i].tolist(), position, c)
                for c in range(N_ENTITIES)
            ]
            for i in range(6)
        ]
        assert_close(added, torch.tensor(sums, dtype=torch.float64))


@pytest.mark.parametrize("arity", [2, 3, 4, 5])
@pytest.mark.parametrize("n_entities", [3, N_ENTITIES])  # with 3, entities stand in a fact twice
def test_a_fact_left_out_is_looked_up_as_if_it_had_not_been_counted(
    arity: int, n_entities: int
) -> None:
    rng = np.random.default_rng(arity)
    facts = Facts(rng.integers(0, 2, 30), rng.integers(0, n_entities, (30, arity)))
    memory = Memory.from_facts({arity: facts}, n_entities)
    for row in range(8):
        without = Memory.from_facts({arity: facts.take(np.arange(30) != row)}, n_entities)
        relation, entities = facts.take(slice(row, row + 1)).to_tensors()
        for position in range(arity):
            found = memory.features(relation, entities, position, leave_out=True)
            wanted = without.features(relation, entities, position)
            assert found.candidates.tolist() == wanted.candidates.tolist()
            assert_close(found.values, wanted.values)


def test_a_fact_left_out_does_not_know_its_own_answer_alone() -> None:
    facts = Facts(np.zeros(3, dtype=np.int64), np.array([[0, 1, 2], [3, 4, 5], [0, 4, 6]]))
    memory = Memory.from_facts({3: facts}, 7)
    relation, entities = facts.take(slice(0, 1)).to_tensors()
    found = memory.features(relation, entities, 2, leave_out=True)
    values = dict(zip(found.candidates.tolist(), found.values[:, ::2].tolist(), strict=True))
    # By frequency, by the first entity, by the second, by both, beside either, beside both.
    assert values == {
        4: [0, 0, 0, 0, 0.5, 0],
        5: [0.5, 0, 0, 0, 0, 0],
        6: [0.5, 1, 0, 0, 0.5, 0],
    }


def test_of_a_relation_the_most_frequent_candidates_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("getd.memory.memory.MOST_FREQUENT", 2)
    column = np.array([1, 2, 2, 3, 3, 3])
    facts = Facts(np.zeros(6, dtype=np.int64), np.stack([column, np.arange(10, 16)], axis=1))
    memory = Memory.from_facts({2: facts}, 20)
    found = memory.features(torch.tensor([0]), torch.tensor([[9, 9]]), 0)
    assert found.candidates.tolist() == [2, 3]
    assert_close(found.values[:, 0], torch.tensor([2 / 6, 3 / 6], dtype=torch.float64))


def test_very_long_facts_have_no_sources_of_two_given_entities() -> None:
    entities = np.arange(40).reshape(2, 20)
    memory = Memory.from_facts({20: Facts(np.zeros(2, dtype=np.int64), entities)}, 40)
    sources = memory.sources(20, 3)
    assert sources[0] == FREQUENCY
    assert [kind_of(source, 20) for source in sources[1:20]] == ["one"] * 19
    assert [kind_of(source, 20) for source in sources[20:]] == ["all", "beside"]
    assert len(memory.counts) == 20 * (1 + 19 + 1) + 1
    found = memory.features(torch.tensor([0]), torch.tensor(entities[:1]), 3)
    assert found.values.shape[1] == 2 * len(sources)


def test_very_many_facts_have_no_sources_of_two_given_entities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = random_facts(4)
    blocks = {4: facts, 3: random_facts(3)}
    every = Memory.from_facts(blocks, N_ENTITIES)
    assert every.unpaired == set()
    assert "0+1" in every.sources(4, 3)

    monkeypatch.setattr("getd.memory.memory.MOST_PAIRS", 4 * 3 * len(facts) - 1)
    fewer = Memory.from_facts(blocks, N_ENTITIES)
    assert fewer.unpaired == {4}
    assert fewer.sources(4, 3) == ["frequency", "0", "1", "2", "0+1+2", "beside"]
    assert fewer.sources(3, 0) == every.sources(3, 0)
    relation, entities = facts.to_tensors()
    for leave_out in (False, True):
        features = fewer.features(relation, entities, 3, leave_out)
        assert features.values.shape[1] == 2 * len(fewer.sources(4, 3))


def test_keys_do_not_wrap_around() -> None:
    """A relation and two of many entities leave 64 bits, too."""
    n_entities = 2**31
    rng = np.random.default_rng(0)
    relation = torch.arange(8)
    entities = torch.tensor(rng.integers(0, n_entities, (1, 3))).repeat(8, 1)
    for lookup in Memory(n_entities)._lookups(relation, entities, 0):
        if lookup.source not in CO_OCCURRENCE:
            assert len(lookup.keys.unique()) == 8


def test_keys_of_many_given_entities_do_not_meet() -> None:
    """Their products leave 64 bits: all facts of large numbers have keys of their own."""
    entities = np.random.default_rng(0).integers(0, 2**40, (20_000, 5))
    memory = Memory(2**40)
    lookups = memory._lookups(torch.zeros(20_000, dtype=torch.long), torch.tensor(entities), 0)
    keys = [lookup.keys for lookup in lookups if kind_of(lookup.source, 5) == "all"]
    assert len(keys) == 1
    assert len(keys[0].unique()) == 20_000


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_some_candidates_score_as_among_all(arity: int) -> None:
    model, facts = remembering(arity), random_facts(arity)
    relation, entities = torch.tensor(facts.relation), torch.tensor(facts.entities)
    everything = model.score_candidates(relation, entities, 1)
    chosen = torch.tensor([5, 0, 5, 8])  # in any order, one twice
    assert_close(model.score_candidates(relation, entities, 1, chosen), everything[:, chosen])
    own = torch.randint(N_ENTITIES, (len(facts), 7), generator=torch.Generator().manual_seed(0))
    assert_close(model.score_candidates(relation, entities, 1, own), everything.gather(1, own))
    assert_close(model.score_relations(entities), model.model.score_relations(entities))


def test_what_was_never_seen_adds_nothing() -> None:
    model = remembering(3)
    relation, entities = torch.tensor([0]), torch.tensor([[7, 0, 0]])
    facts = random_facts(3)
    nothing = Memory.from_facts({3: facts.take(slice(0, 0))}, N_ENTITIES)
    empty = WithMemory(
        model.model, nothing, {"3-1": MemoryWeights(sources={"0": SourceWeights(share=1.0)})}
    )
    for candidates in (None, torch.tensor([1, 2]), torch.tensor([[1, 2]])):
        scores = empty.score_candidates(relation, entities, 1, candidates)
        assert_close(scores, model.model.score_candidates(relation, entities, 1, candidates))


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "run"
    getd.train(getd.load("demo"), model="n-cp", out=path, epochs=2)
    return path


def test_the_weights_chosen_help_facts_that_they_were_not_chosen_on(run_path: Path) -> None:
    run = open_run(run_path)
    memory = Memory.from_facts(run.kb.split("train"), run.kb.n_entities)
    chosen = fit_weights(run.model, memory, run.kb)
    assert set(chosen) == {
        f"{arity}-{position}" for arity in run.kb.arities for position in range(arity)
    }
    for split in ("valid", "test"):
        measured = evaluate(
            WithMemory(run.model, memory, chosen), run.kb, split, by=(), baselines=False
        )
        assert measured.mrr > run.evaluate(split, by=(), baselines=False).mrr + 0.05


def test_a_run_carries_its_memory(run_path: Path) -> None:
    run = open_run(run_path)
    question = ("plays for", ["Ada Hale", "?", "2016-17"])
    before = run.evaluate("test").mrr
    mrr = run.remember().mrr
    again = open_run(run_path)
    assert isinstance(again.model, WithMemory)
    assert again.evaluate("valid").mrr == pytest.approx(mrr, abs=1e-6)
    assert again.predict(*question) == run.predict(*question)
    assert open_run(run_path, memory=False).evaluate("test").mrr == before
    unknown = '{"weights": {"3-0": {"sources": {"1": {"shar": 1}}}}}'
    for broken in ("{}", "[]", '{"weights": {"3-0": {"scal": 1}}}', unknown, '{"weights": 3}', "{"):
        (run_path / "memory.json").write_text(broken)
        with pytest.raises(RunError, match=r"memory\.json: expected"):
            open_run(run_path)
    (run_path / "memory.json").unlink()


def test_training_gives_it_where_it_is_asked_to(tmp_path: Path) -> None:
    kb = getd.load("demo")
    run = getd.train(
        kb, model="n-cp", out=tmp_path / "run", config={"memory": {"use": True}}, epochs=1
    )
    assert run.folder.has_memory()
    report = run.folder.read_json("report.json")
    assert report["metrics"]["mrr"] == open_run(tmp_path / "run").evaluate("test").mrr
    alone = KnowledgeBase.from_facts({"train": kb.decode(kb.split("train")[3])})
    with pytest.raises(FactError, match="has no valid facts"):
        getd.train(alone, model="n-cp", out=tmp_path / "other", config={"memory": {"use": True}})
    assert not (tmp_path / "other").exists()


def test_nothing_is_learnt_twice() -> None:
    """The memory has no parameters: only the model's own are trained."""
    model = remembering(3)
    assert [name for name, _ in model.named_parameters() if not name.startswith("model.")] == []
    assert all(isinstance(buffer, Tensor) for buffer in model.memory.buffers())

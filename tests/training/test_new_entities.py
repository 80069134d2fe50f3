"""New entities get vectors; what was learnt stays bit for bit."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch

import getd
from getd.errors import FactFileError, RunError
from getd.evaluation.scoring import held_out_loss
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.memory import Memory
from getd.memory.with_memory import WithMemory
from getd.models.registry import MODELS, make_model, model_settings
from getd.run import Run
from getd.runs.sizes import model_sizes
from getd.training.new_entities import SMOOTHING, _loss, _means, _Scorer, fit_entities

SETTINGS = {"entity_dim": 8}


def train(kb: KnowledgeBase, out: Path, model: str = "getd", epochs: int = 2) -> Run:
    values = {**SETTINGS, **({"ring_ranks": 4} if model == "getd" else {})}
    config = {
        "model": {"name": model, **values},
        "training": {"epochs": epochs, "threads": 1, "learning_rate": 0.02},
    }
    return getd.train(kb, out=out, config=config)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The demo without two of its players."""
    kb = _without(getd.load("demo"), {"Ada Hale", "Ben Brandt"})
    return train(kb, tmp_path_factory.mktemp("extend") / "run", epochs=12)


def _without(kb: KnowledgeBase, names: set[str]) -> KnowledgeBase:
    splits = {}
    for split, blocks in kb.splits.items():
        facts = [fact for block in blocks.values() for fact in kb.decode(block)]
        splits[split] = [fact for fact in facts if not names & set(fact)]
    return KnowledgeBase.from_facts(splits)


def _facts_of(name: str) -> list[tuple[str, ...]]:
    kb = getd.load("demo")
    blocks = join(*kb.splits.values()).values()
    return sorted(fact for block in blocks for fact in kb.decode(block) if name in fact)


def _write(path: Path, facts: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(fact) + "\n" for fact in facts))
    return path


def test_known_rows_do_not_change_and_the_new_entity_is_ranked_better_than_by_chance(
    run: Run, tmp_path: Path
) -> None:
    facts = _facts_of("Ada Hale")
    given = facts[0::2]
    held_out = [fact for fact in facts[1::2] if fact[0] == "plays for"]
    before = (run.path / "weights.safetensors").read_bytes()
    larger = run.extend(_write(tmp_path / "new.txt", given), tmp_path / "larger")
    assert (run.path / "weights.safetensors").read_bytes() == before
    assert larger.kb.n_entities == run.kb.n_entities + 1
    moved = torch.tensor(larger.kb.entities.ids(run.kb.entities.names))
    for name, tensor in run.model.bare.state_dict().items():
        after = larger.model.bare.state_dict()[name]
        assert torch.equal(after if after.shape == tensor.shape else after[moved], tensor)
    for relation, *entities in given:
        question = ["?", *entities[1:]]
        answers = larger.predict(relation, question, top=300, include_known=True)
        assert [answer.known for answer in answers if answer.name == entities[0]] == [True]
    ranks = []
    for relation, *entities in held_out:
        answers = [
            answer.name for answer in larger.predict(relation, ["?", *entities[1:]], top=300)
        ]
        ranks.append(1 + answers.index("Ada Hale"))
    assert np.mean([1 / rank for rank in ranks]) > 0.05  # chance: 0.03


def test_facts_without_new_names_join_the_known_ones(run: Run, tmp_path: Path) -> None:
    new = ("born in", *sorted(set(run.kb.entities))[:2])
    larger = run.extend(_write(tmp_path / "new.txt", [new, new]), tmp_path / "larger")
    assert larger.folder.read_json("extended.json")["new_entities"] == 0
    assert torch.equal(
        larger.model.bare.state_dict()["entity.weight"],
        run.model.bare.state_dict()["entity.weight"],
    )
    answers = larger.predict(new[0], [new[1], "?"], top=300, include_known=True)
    assert [answer.known for answer in answers if answer.name == new[2]] == [True]


@pytest.mark.parametrize(
    "model", [name for name, entry in MODELS.items() if not entry.model.binary_only]
)
def test_every_model_can_be_extended(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getd.training.new_entities.MIN_STEPS", 3)
    facts = [("r", f"e{i}", f"e{(i + 1) % 9}", f"e{(i * i) % 9}") for i in range(9)]
    kb = KnowledgeBase.from_facts({"train": facts, "valid": facts[:2], "test": facts[2:4]})
    run = getd.train(
        kb,
        out=tmp_path / "run",
        config={"model": {"name": model}, "training": {"epochs": 1, "threads": 1}},
    )
    larger = run.extend(
        _write(tmp_path / "new.txt", [("r", "new", "e1", "e2")]), tmp_path / "larger"
    )
    answers = larger.predict("r", ["?", "e1", "e3"], top=20)
    assert "new" in {answer.name for answer in answers}
    assert all(np.isfinite(answer.score) for answer in answers)


def test_known_answers_are_no_negatives_of_new_entities() -> None:
    facts = [("r", "new", "a"), ("r", "new", "b"), ("r", "c", "d"), ("r", "e", "a")]
    kb = KnowledgeBase.from_facts({"train": facts, "test": [("r", "new", "e")]})
    settings = model_settings("n-cp", {"entity_dim": 4, "batch_norm": False})
    generator = torch.Generator().manual_seed(0)
    model = make_model("n-cp", settings, model_sizes(kb), generator).double().eval()
    block = kb.split("train")[2]
    scores = model.score_candidates(
        torch.tensor(block.relation), torch.tensor(block.entities), 1
    ).tolist()

    expected = 0.0
    for row, (_, first, second) in enumerate(facts):
        left_out = {name for _, given, name in facts if given == first and name != second}
        kept = {
            name: scores[row][kb.entities.id(name)] for name in kb.entities if name not in left_out
        }
        log_sum = math.log(sum(map(math.exp, kept.values())))
        expected += (
            log_sum - (1 - SMOOTHING) * kept[second] - SMOOTHING * sum(kept.values()) / len(kept)
        )
    loss = _loss(_Scorer(model), {}, block, 1, kb.known("train"))
    assert loss.item() == pytest.approx(expected / len(facts))


def test_what_cannot_be_added_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(
        FactFileError, match=r"new.txt:1: unknown relation 'born at'; did you mean 'born in'\?"
    ):
        run.extend(_write(tmp_path / "new.txt", [("born at", "a", "b")]), tmp_path / "larger")
    with pytest.raises(
        FactFileError, match=r"new.txt:1: relation 'born in' has 2 entities, found 3"
    ):
        run.extend(_write(tmp_path / "new.txt", [("born in", "a", "b", "c")]), tmp_path / "larger")
    with pytest.raises(
        FactFileError, match=r"new.txt:1: expected the name of a relation, found '\?'"
    ):
        run.extend(_write(tmp_path / "new.txt", [("?", "a", "b")]), tmp_path / "larger")
    with pytest.raises(FactFileError, match=r"new.txt:1: expected names, found '\?'"):
        run.extend(_write(tmp_path / "new.txt", [("born in", "a", "?")]), tmp_path / "larger")
    assert not (tmp_path / "larger").exists()
    with pytest.raises(RunError, match=r"is there already; choose another place"):
        run.extend(_write(tmp_path / "new.txt", [("born in", "a", "b")]), run.path)


@pytest.mark.parametrize("model_name", ["getd", "n-cp", "transe"])
def test_fitting_makes_the_facts_of_a_new_entity_likelier(model_name: str) -> None:
    facts = [("r", f"e{i}", f"e{(3 * i + 1) % 12}") for i in range(12)]
    facts += [("r", "new", "e5"), ("r", "new", "e7"), ("r", "e2", "new")]
    kb = KnowledgeBase.from_facts({"train": facts})
    settings = model_settings(model_name, {"entity_dim": 6, "initial_scale": 1.0})
    generator = torch.Generator().manual_seed(0)
    model = make_model(model_name, settings, model_sizes(kb), generator).eval()
    new = np.array([kb.entities.id("new")])
    own = {2: kb.split("train")[2].take(np.arange(12, 15))}

    # Compare with the vector that the fit begins with.
    centre = deepcopy(model)
    for module, table in centre.entity_tables().items():
        with torch.no_grad():
            table.weight[new] = _means(model.get_submodule(module).weight, kb, new)
    fit_entities(model, kb, new, lambda done, total: None)
    known = kb.known("train")
    assert held_out_loss(model, own, known) < held_out_loss(centre, own, known) - 0.05


def test_a_new_entity_begins_at_the_mean_of_those_in_its_places() -> None:
    """Each fact of its counts the mean over the old entities in the same slot."""
    facts = [
        ("r", "new", "a"),
        ("s", "a", "new"),
        ("r", "a", "b"),
        ("r", "c", "b"),
        ("s", "b", "c"),
        ("t", "other", "a"),
    ]
    kb = KnowledgeBase.from_facts({"train": facts})
    names = ["new", "other"]
    table = torch.randn(kb.n_entities, 4, generator=torch.Generator().manual_seed(0))
    row = {name: table[kb.entities.id(name)] for name in kb.entities}
    new, other = _means(table, kb, kb.entities.ids(names))
    assert torch.allclose(new, ((row["a"] + row["c"]) / 2 + row["c"]) / 2, atol=1e-6)
    assert torch.allclose(other, (row["a"] + row["b"] + row["c"]) / 3, atol=1e-6)


def test_new_facts_take_no_source_from_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them an arity has more pairs than are counted for a new memory."""
    rows = np.random.default_rng(0).integers(0, 8, (60, 4)).tolist()
    facts = sorted({("r", *(f"e{entity}" for entity in row)) for row in rows})
    kb = KnowledgeBase.from_facts({"train": facts[:40], "valid": facts[40:]})
    run = train(kb, tmp_path / "run", "n-cp")
    run.remember()
    assert isinstance(run.model, WithMemory)

    monkeypatch.setattr("getd.memory.memory.MOST_PAIRS", 40 * 4 * 3)
    assert not Memory.from_facts(kb.split("train"), kb.n_entities).unpaired
    larger = run.extend([("r", "new", "e0", "e1", "e2")], tmp_path / "larger")
    assert isinstance(larger.model, WithMemory)
    assert Memory.from_facts(larger.kb.split("train"), larger.kb.n_entities).unpaired == {4}
    assert larger.model.memory.sources(4, 0) == run.model.memory.sources(4, 0)

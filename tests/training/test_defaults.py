"""What a config leaves open follows the data; what it says stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import getd
from getd import Callbacks, Config, KnowledgeBase
from getd.errors import ConfigError
from getd.training.defaults import (
    DRAWN,
    LEAST_EPOCHS,
    MANY_ENTITIES,
    MANY_QUESTIONS,
    MAX_VALIDATION,
    MOST_STEPS,
    STEPS,
    Shape,
    default_model,
    describe_choice,
    encoder_rule,
    fill_in,
    getd_rule,
)


def shape(facts: int, arity: int = 3, entities: int = 1000, valid: int = 100) -> Shape:
    return Shape(facts, facts * arity, entities, (arity,), valid)


def small_kb(valid: int = 5) -> KnowledgeBase:
    rng = np.random.default_rng(0)
    pairs = rng.permutation(81)[:60]
    facts = [("r", f"a{pair // 9}", f"b{pair % 9}") for pair in pairs]
    splits = {"train": facts[:50]}
    if valid:
        splits["valid"] = facts[50 : 50 + valid]
    return KnowledgeBase.from_facts(splits)


@pytest.mark.parametrize("facts", [20, 300, 3000, 20_000, 200_000, 2_000_000])
def test_training_takes_about_as_many_steps_whatever_the_size(facts: int) -> None:
    rule = encoder_rule(shape(facts))
    batch_size, epochs = rule["training.batch_size"], rule["training.epochs"]
    assert 64 <= batch_size <= 512
    assert LEAST_EPOCHS <= epochs <= 150
    steps = epochs * facts * 3 / batch_size
    if 30 < epochs < 150:
        assert steps == pytest.approx(STEPS, rel=0.1)
    if epochs > LEAST_EPOCHS:
        assert steps <= MOST_STEPS
    if facts <= 200_000:
        assert epochs >= 20


def test_large_sets_get_a_wider_network() -> None:
    names = ("model.entity_dim", "model.dropout", "training.label_smoothing")
    few = encoder_rule(shape((MANY_QUESTIONS - 1) // 3))
    many = encoder_rule(shape(MANY_QUESTIONS // 3 + 1))
    assert not set(names) & set(few)
    assert [many[name] for name in names] == [256, 0.3, 0.6]
    assert (few["training.epochs"], many["training.epochs"]) == (26, 30)


def test_candidates_are_drawn_where_there_are_very_many() -> None:
    few = encoder_rule(shape(5000, entities=MANY_ENTITIES))
    many = encoder_rule(shape(5000, entities=MANY_ENTITIES + 1))
    assert few["training.drawn_candidates"] is None
    assert many["training.drawn_candidates"] == DRAWN < MANY_ENTITIES


def test_arities_share_a_ring() -> None:
    one = Shape(100, 300, 50, (3,), 10)
    several = Shape(100, 300, 50, (2, 3), 10)
    assert getd_rule(several)["model.shared_ring"]
    assert not getd_rule(one)["model.shared_ring"]


@pytest.mark.parametrize(
    ("tables", "model"),
    [
        ({}, "encoder"),
        ({"training": {"epochs": 3}}, "encoder"),
        ({"model": {"name": "getd"}}, "getd"),
        ({"model": {"ring_ranks": 5}}, "getd"),
        ({"model": {"name": "n-cp"}}, "n-cp"),
        ({"preset": "paper"}, "getd"),
    ],
)
def test_the_model_is_the_encoder_unless_something_else_is_asked_for(
    tables: dict[str, Any], model: str
) -> None:
    config = Config.parse(tables)
    assert default_model(config) == model
    assert fill_in(config, small_kb()).model_name == model


def test_what_is_given_stays() -> None:
    given = {"training": {"epochs": 7, "batch_size": 9}, "memory": {"use": False}}
    chosen = fill_in(Config.parse(given), small_kb())
    assert (chosen.training.epochs, chosen.training.batch_size) == (7, 9)
    assert not chosen.memory.use
    assert chosen.training.patience == 0
    chosen = fill_in(Config.parse({"training": {"batch_size": 9}}), small_kb())
    assert chosen.training.patience == encoder_rule(Shape.of(small_kb()))["training.patience"]


@pytest.mark.parametrize("tables", [{"preset": "paper"}, {"model": {"name": "n-cp"}}])
def test_the_preset_paper_and_other_models_keep_their_defaults(tables: dict[str, Any]) -> None:
    config = Config.parse(tables)
    assert fill_in(config, small_kb()) is config
    assert describe_choice(config, config, small_kb()) is None


def test_a_memory_needs_validation() -> None:
    assert fill_in(Config.parse({}), small_kb()).memory.use
    assert not fill_in(Config.parse({}), small_kb(valid=0)).memory.use


def test_very_many_validation_facts_are_sampled() -> None:
    n = MAX_VALIDATION + 1
    kb = KnowledgeBase.from_facts(
        {"train": [("r", "a", "b")], "valid": [("r", f"a{i}", "b") for i in range(n)]}
    )
    assert fill_in(Config.parse({}), kb).training.validation_sample == MAX_VALIDATION
    assert fill_in(Config.parse({}), small_kb()).training.validation_sample is None


def test_a_run_keeps_what_was_chosen_says_so_and_resumes(tmp_path: Path) -> None:
    sentences: list[str] = []
    kb = small_kb()
    run = getd.train(
        kb, out=tmp_path / "run", epochs=1, callbacks=Callbacks(on_choice=sentences.append)
    )
    stored = run.folder.read_config()
    assert stored["model"]["name"] == "encoder"
    assert stored["training"]["batch_size"] == 64
    assert stored["memory"] == {"use": True}
    assert run.folder.has_memory()
    assert sentences == [
        "chosen for 50 facts of arity 2, 18 entities: model encoder, batch_size 64, memory"
    ]

    resumed = getd.train(kb, out=tmp_path / "run", epochs=2, resume=True)
    assert len(resumed.folder.read_history()) == 2
    again = getd.train(kb, out=tmp_path / "again", config=stored)
    assert again.folder.read_config()["training"] == stored["training"]


def test_a_preset_that_is_not_there_is_refused(tmp_path: Path) -> None:
    message = "preset is auto or paper, found 'papre'; did you mean 'paper'?"
    with pytest.raises(ConfigError, match=f"^{message.replace('?', '[?]')}$"):
        getd.train(small_kb(), out=tmp_path / "run", config={"preset": "papre"})
    with pytest.raises(ConfigError, match=r"^preset is auto or paper, found 3$"):
        Config.parse({"preset": 3})

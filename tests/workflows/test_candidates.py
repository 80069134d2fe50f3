"""Candidates: the default first, and in all of them what the user gave."""

from __future__ import annotations

from typing import Any

import pytest

from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.training import defaults
from getd.training.defaults import fill_in
from getd.workflows.candidates import SEEDS, candidates, differences, other_seeds
from tests.tiny import tiny_knowledge_base


def binary_kb() -> KnowledgeBase:
    facts = [("r", f"a{number % 5}", f"b{number % 7}") for number in range(30)]
    return KnowledgeBase.from_facts({"train": facts[:25], "valid": facts[25:]})


def derive(tables: dict[str, Any], kb: KnowledgeBase | None = None) -> dict[str, Config]:
    return candidates(Config.parse(tables), kb or tiny_knowledge_base())


def test_the_default_is_the_first() -> None:
    kb = tiny_knowledge_base()
    derived = derive({}, kb)
    assert next(iter(derived)) == "default"
    assert derived["default"] == fill_in(Config.parse({}), kb)
    assert differences(derived["default"], derived["default"]) == {}


def test_kinds_and_sizes_compete() -> None:
    derived = derive({})
    assert {config.model_name for config in derived.values()} == {"encoder", "getd"}
    assert differences(derived["attention"], derived["default"]) == {"model.kind": "attention"}
    wide = {"model.entity_dim": 256, "model.dropout": 0.3}
    assert differences(derived["wide"], derived["default"]) == wide
    assert differences(derived["getd-50"], derived["default"])["model.entity_dim"] == 50


@pytest.mark.parametrize(("n_facts", "epochs"), [(100, 200), (24_000, 80), (60_000, 40)])
def test_getd_gets_some_fifteen_thousand_steps(n_facts: int, epochs: int) -> None:
    facts = [("r", f"a{number % 300}", f"b{number // 300}") for number in range(n_facts)]
    kb = KnowledgeBase.from_facts({"train": facts, "valid": facts[:1]})
    settings = derive({}, kb)["getd-50"].training
    assert (settings.epochs, settings.patience) == (epochs, max(10, epochs // 3))
    assert settings.schedule == "linear"


@pytest.mark.parametrize(("batch_size", "epochs"), [(96, 60), (256, 160)])
def test_the_steps_of_getd_are_those_of_the_batch_size_that_was_given(
    batch_size: int, epochs: int
) -> None:
    facts = [("r", f"a{number % 300}", f"b{number // 300}") for number in range(24_000)]
    kb = KnowledgeBase.from_facts({"train": facts, "valid": facts[:1]})
    derived = derive({"training": {"batch_size": batch_size}}, kb)
    assert derived["getd"].training.batch_size == batch_size
    assert derived["getd"].training.epochs == epochs


def test_a_model_for_binary_facts_competes_on_binary_facts_alone() -> None:
    assert "complex" in derive({}, binary_kb())
    assert "complex" not in derive({})


@pytest.mark.parametrize("name", ["getd", "encoder", "n-cp", "rae", "conve"])
def test_with_a_model_named_only_that_one_competes(name: str) -> None:
    derived = derive({"model": {"name": name}}, binary_kb())
    assert {config.model_name for config in derived.values()} == {name}
    assert len(derived) > 2


@pytest.mark.parametrize(
    "given",
    [
        {"training": {"label_smoothing": 0.25, "epochs": 3}},
        {"training": {"batch_size": 7, "seed": 3}},
        {"model": {"name": "getd", "entity_dim": 9}},
        {"model": {"name": "encoder", "kind": "attention", "dropout": 0.15}},
        {"model": {"name": "n-cp", "entity_dim": 9}, "training": {"ema": 0.9}},
        {"memory": {"use": False}},
    ],
)
def test_what_is_given_stays_in_all(given: dict[str, Any]) -> None:
    derived = derive(given, binary_kb())
    assert len(derived) > 1
    for config in derived.values():
        tables = config.tables()
        for section, values in given.items():
            assert values.items() <= tables[section].items()


def test_all_are_validated_on_as_many_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "MAX_VALIDATION", 4)
    derived = derive({}, binary_kb())
    assert "complex" in derived
    assert {config.training.validation_sample for config in derived.values()} == {4}
    given = derive({"training": {"validation_sample": 3}}, binary_kb())
    assert {config.training.validation_sample for config in given.values()} == {3}


def test_no_two_are_the_same() -> None:
    for given in ({}, {"model": {"name": "encoder", "kind": "attention"}}):
        settings = []
        for config in derive(given).values():
            settings.append((config.model_name, config.model, config.training))
        assert all(settings.count(each) == 1 for each in settings)


def test_other_seeds_differ_in_the_seed_alone() -> None:
    default = derive({})["default"]
    derived = other_seeds("default", default)
    assert len(derived) == SEEDS
    for number, config in enumerate(derived.values(), start=1):
        assert differences(config, default) == {"training.seed": number}
    assert other_seeds("default", derive({"training": {"seed": 0}})["default"]) == {}

"""The public face: one function per command, and a run with verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import getd
from getd import api
from getd.config import to_toml
from getd.errors import ConfigError, FactError

FACTS = [("moves", f"player {i}", f"club {i % 3}", f"club {i % 5}") for i in range(30)]
CONFIG = {"model": {"entity_dim": 4}, "training": {"epochs": 1, "threads": 1}}


@pytest.fixture(scope="module")
def kb() -> getd.KnowledgeBase:
    splits = {"train": FACTS[:20], "valid": FACTS[20:25], "test": FACTS[25:]}
    return getd.KnowledgeBase.from_facts(splits, name="moves")


@pytest.fixture(scope="module")
def run(kb: getd.KnowledgeBase, tmp_path_factory: pytest.TempPathFactory) -> getd.Run:
    out = tmp_path_factory.mktemp("api") / "run"
    return getd.train(kb, "n-cp", out, config=CONFIG)


def test_a_training_without_facts_resumes_those_of_the_run(run: getd.Run) -> None:
    resumed = getd.train(None, out=run.path, resume=True, epochs=2)
    assert resumed.kb.entities == run.kb.entities
    assert len(resumed.folder.read_history()) == 2


@pytest.mark.parametrize("resume", [False, True])
def test_a_training_without_facts_needs_a_run(tmp_path: Path, resume: bool) -> None:
    with pytest.raises(ConfigError, match=r"^expected a knowledge base, or a run to resume$"):
        getd.train(None, out=None if resume else tmp_path / "run", resume=resume)


def test_settings_as_keywords_win_over_a_parsed_config(
    kb: getd.KnowledgeBase, tmp_path: Path
) -> None:
    config = getd.Config.parse({**CONFIG, "training": {"epochs": 9}}, "n-cp")
    run = getd.train(kb, out=tmp_path / "run", config=config, epochs=1)
    assert run.folder.read_config()["training"]["epochs"] == 1
    assert config.training.epochs == 9


def test_baselines_are_reported_on_request(kb: getd.KnowledgeBase) -> None:
    assert "baselines" not in getd.describe(kb).as_dict()
    assert set(getd.describe(kb, baselines=True).as_dict()["baselines"]) == {"frequency", "lookup"}
    train_alone = kb.with_splits(train=kb.split("train"))
    with pytest.raises(FactError, match=r"^moves has no test facts: it has train only$"):
        getd.describe(train_alone, baselines=True)


def test_parameters_of_models_are_counted_for_a_knowledge_base(kb: getd.KnowledgeBase) -> None:
    formulas = {record["name"]: record["parameters"] for record in api.models()}
    counts = {record["name"]: record["parameters"] for record in api.models(kb)}
    assert list(formulas) == list(counts)
    assert "|E|" in formulas["n-cp"]
    assert counts["n-cp"] > 25 * 3 * kb.n_entities
    assert (counts["transe"], counts["lookup"]) == (None, 0)


def test_a_fact_is_explained_at_the_positions_that_are_named(run: getd.Run) -> None:
    fact = list(FACTS[0][1:])
    explained = run.explain("moves", fact, top=2)
    assert [len(explanation.facts) <= 2 for explanation in explained] == [True] * 3
    assert run.explain("moves", fact, [2], top=2) == explained[2:]
    with pytest.raises(FactError, match=r"^expected a position below 3, found 3$"):
        run.explain("moves", fact, [3])


def test_an_answer_is_explained_like_its_fact(run: getd.Run) -> None:
    question = run.question("moves", ["player 1", "?", "club 1"])
    (answers,) = run.answer([question], top=1, include_known=True)
    (of_answer,) = run.explain_answer(question, answers[0])
    (of_fact,) = run.explain("moves", ["player 1", answers[0].name, "club 1"], [1])
    assert of_answer == of_fact


def test_facts_are_rated_in_their_order(run: getd.Run) -> None:
    ratings = run.rate(FACTS[:4])
    assert [rating.fact for rating in ratings] == FACTS[:4]
    assert all(rating.known for rating in ratings)


def test_a_memory_is_compared_with_the_model_alone(run: getd.Run) -> None:
    first = run.remember()
    again = run.remember()
    assert first == again  # the model alone is ranked, though the run has a memory by now
    assert getd.open_run(run.path, memory=False).evaluate("valid").mrr == first.mrr_without
    assert getd.open_run(run.path).evaluate("valid").mrr == first.mrr


def test_nothing_is_overwritten_unless_that_is_asked_for() -> None:
    functions = [*vars(api).values(), *vars(getd.Run).values()]
    defaults = []
    for function in filter(inspect.isfunction, functions):
        parameter = inspect.signature(function).parameters.get("overwrite")
        if parameter is not None:
            defaults.append(parameter.default)
    assert len(defaults) >= 3
    assert set(defaults) == {False}


def test_a_training_reads_a_path_tuples_and_frames(tmp_path: Path) -> None:
    (tmp_path / "moves.tsv").write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    columns = ["relation", "e1", "e2", "e3"]
    frame = pl.DataFrame(FACTS, schema=columns, orient="row")
    sources = [tmp_path / "moves.tsv", str(tmp_path / "moves.tsv"), FACTS, frame]
    sources += [{"train": FACTS}, {"train": frame}]
    for number, source in enumerate(sources):
        run = getd.train(source, "n-cp", tmp_path / f"run{number}", config=CONFIG)
        assert run.kb.n_entities == 35
        assert getd.describe(source).as_dict()["entities"] == 35


def test_a_training_refuses_what_is_no_data() -> None:
    with pytest.raises(FactError, match=r"^expected tuples of a relation and entities, found 3$"):
        getd.train(3)


def test_a_config_may_be_the_path_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    tables = {"data": str(tmp_path / "facts.tsv"), **CONFIG}
    (tmp_path / "small.toml").write_text(to_toml(tables))
    run = getd.train(None, "n-cp", tmp_path / "run", config=str(tmp_path / "small.toml"))
    assert run.folder.read_config()["model"]["entity_dim"] == 4
    with pytest.raises(ConfigError, match=r"^cannot read .*none\.toml: "):
        getd.train(FACTS, config=tmp_path / "none.toml")


def test_the_data_of_a_config_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    run = getd.train(None, "n-cp", tmp_path / "run", config={"data": path, **CONFIG})
    assert run.folder.read_config()["data"] == str(path)


@pytest.mark.parametrize(("source", "kind"), [(None, "NoneType"), (pl.DataFrame(), "DataFrame")])
def test_load_refuses_what_is_no_path_and_names_what_takes_it(source: Any, kind: str) -> None:
    message = f"^expected a path or the name of a data set, found {kind}; for facts in Python"
    with pytest.raises(FactError, match=message):
        getd.load(source)


@pytest.mark.parametrize("top", [0, -1, "2", 2.0, True])
def test_a_number_of_answers_is_at_least_one(run: getd.Run, tmp_path: Path, top: Any) -> None:
    question = run.question("moves", ["player 1", "?", "club 1"])
    calls: list[Callable[[], Any]] = [
        lambda: run.predict("moves", ["player 1", "?", "club 1"], top),
        lambda: run.explain("moves", list(FACTS[0][1:]), top=top),
        lambda: run.explain_answer(question, run.answer([question])[0][0], top),
        lambda: run.suspicious(top),
        lambda: run.complete("moves", tmp_path / "out.tsv", top),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match=r"^expected top of 1 or more, found "):
            call()


def test_one_breakdown_may_be_a_text(run: getd.Run) -> None:
    assert run.evaluate("test", by="arity") == run.evaluate("test", by=["arity"])
    with pytest.raises(ConfigError, match=r"^by: expected one of .*found 'a'"):
        run.evaluate("test", by="a")


def test_a_search_is_not_resumed_without_a_budget(run: getd.Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    (tmp_path / "run.candidates").mkdir()
    (tmp_path / "run.candidates" / "search.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"run is a search; add --budget MINUTES$"):
        getd.train(run.kb, out=out, resume=True)
    assert not out.exists()

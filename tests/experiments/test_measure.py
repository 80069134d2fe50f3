"""What rows are trained on, fitted on and measured with, compared with the same by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from getd.api import open_run
from getd.datasets.load import load
from getd.evaluation.evaluate import evaluate
from getd.experiments import rows as rows_module
from getd.experiments.claims import check_claims
from getd.experiments.measure import Measurer, valid_in_train, with_test_as_valid
from getd.experiments.result import Claims, Measurement
from getd.experiments.rows import Point, all_rows, find_row
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.fit import fit_weights
from getd.memory.memory import Memory
from getd.memory.with_memory import WithMemory
from getd.models.base import ScoringModel
from getd.models.ensemble import Ensemble, combine_members
from getd.run import Run
from getd.training.callbacks import Callbacks
from getd.workflows.member_weights import fit_members
from tests.experiments.test_claims import index, tables

ROW = """
data = "{data}"

[row]
about = "A small one"
minutes = 1

[model]
name = "n-cp"
entity_dim = 4

[training]
epochs = 60
learning_rate = 0.1
batch_size = 16
patience = 2
threads = 1
"""
COMBINED = """
data = "{data}"
members = ["best/getd-tiny", "best/encoder-tiny"]
"""
SIZE = 20


def world() -> dict[str, list[tuple[str, ...]]]:
    """Facts that memory helps with; valid and test hold as many, but other facts."""
    train = [("r", f"a{i}", f"b{i % 3}", f"x{i % 7}") for i in range(SIZE)]
    train += [("s", f"a{i}", f"a{(i + 1) % SIZE}") for i in range(SIZE)]
    valid = [("r", f"a{i}", f"b{(i + 1) % 3}", f"x{i % 7}") for i in range(0, SIZE, 2)]
    test = [("r", f"a{i}", f"b{(i + 2) % 3}", f"x{(i + i % 4) % 7}") for i in range(0, SIZE, 2)]
    return {"train": train, "valid": valid, "test": test}


@pytest.fixture(scope="module")
def measurer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measurer]:
    """A row on data of its own, and where its runs are; they are trained once for all tests."""
    folder = tmp_path_factory.mktemp("measure")
    (folder / "data").mkdir()
    for split, facts in world().items():
        lines = ["\t".join(fact) + "\n" for fact in facts]
        (folder / "data" / f"{split}.txt").write_text("".join(lines))
    (folder / "rows" / "best").mkdir(parents=True)
    (folder / "rows" / "combined").mkdir()
    row = ROW.format(data=folder / "data")
    (folder / "rows" / "best" / "getd-tiny.toml").write_text(row)
    (folder / "rows" / "best" / "encoder-tiny.toml").write_text(row.replace("n-cp", "distmult"))
    combined = COMBINED.format(data=folder / "data")
    (folder / "rows" / "combined" / "tiny.toml").write_text(combined)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "ROWS", folder / "rows")
        all_rows.cache_clear()
        yield Measurer(folder / "results", folder / "runs", lambda name: nullcontext(Callbacks()))
    all_rows.cache_clear()


@pytest.fixture(scope="module")
def kb(measurer: Measurer) -> KnowledgeBase:
    return load(find_row("best/getd-tiny").data)


def measured(measurer: Measurer, name: str, seed: int = 0) -> Measurement:
    row = find_row(name)
    (point,) = row.with_seeds([seed])
    result = measurer.measure(row, point)
    assert isinstance(result, Measurement)
    return result


def run_of(measurer: Measurer, name: str, seed: int = 0) -> Run:
    return open_run(measurer.run_folder(Point(name, seed)).path)


def mrr(model: ScoringModel, kb: KnowledgeBase) -> float:
    return evaluate(model, kb, by=(), baselines=False).mrr


def facts_of(*splits: str) -> list[tuple[str, ...]]:
    return sorted(fact for split in splits for fact in world()[split])


def decoded(kb: KnowledgeBase, split: str) -> list[tuple[str, ...]]:
    return sorted(fact for block in kb.split(split).values() for fact in kb.decode(block))


def test_valid_joins_train_and_test_stays_apart(kb: KnowledgeBase) -> None:
    merged = valid_in_train(kb)
    assert list(merged.splits) == ["train", "test"]
    assert decoded(merged, "train") == facts_of("train", "valid")
    assert decoded(merged, "test") == facts_of("test")


def test_curves_are_of_test_and_learnt_from_train_alone(kb: KnowledgeBase) -> None:
    curves = with_test_as_valid(kb)
    assert {split: decoded(curves, split) for split in curves.splits} == {
        "train": facts_of("train"),
        "valid": facts_of("test"),
        "test": facts_of("test"),
    }


def test_a_row_is_trained_with_the_seed_of_its_point(measurer: Measurer) -> None:
    results = [measured(measurer, "best/getd-tiny", seed) for seed in (0, 1)]
    runs = [run_of(measurer, "best/getd-tiny", seed) for seed in (0, 1)]
    assert [run.folder.read_config()["training"]["seed"] for run in runs] == [0, 1]
    assert results[0].metrics != results[1].metrics


def test_memory_counts_train_and_its_weights_are_fitted_with_what_it_counts(
    measurer: Measurer, kb: KnowledgeBase
) -> None:
    result = measured(measurer, "best/getd-tiny+memory")
    model = run_of(measurer, "best/getd-tiny").model.bare
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    weights = fit_weights(model, memory, kb)
    assert result.memory == {name: values.model_dump() for name, values in weights.items()}
    assert result.mrr == mrr(WithMemory(model, memory, weights), kb)
    assert any(values.sources for values in weights.values())


def test_an_ensemble_is_the_mean_of_three_seeds(measurer: Measurer, kb: KnowledgeBase) -> None:
    result = measured(measurer, "best/getd-tiny+ensemble")
    members = [run_of(measurer, "best/getd-tiny", seed).model.bare for seed in (0, 1, 2)]
    assert result.mrr == mrr(Ensemble(members), kb)
    assert result.mrr not in [mrr(member, kb) for member in members]


def test_with_valid_it_is_trained_on_train_and_valid_for_as_many_epochs_as_were_best(
    measurer: Measurer, kb: KnowledgeBase
) -> None:
    result = measured(measurer, "best/getd-tiny+valid")
    best = run_of(measurer, "best/getd-tiny").folder.read_json("report.json")["best_epoch"]
    run = run_of(measurer, "best/getd-tiny+valid")
    training = run.folder.read_config()["training"]
    assert best < 60
    assert (training["epochs"], training["patience"], len(run.folder.read_history())) == (
        best,
        0,
        best,
    )
    assert decoded(run.kb, "train") == facts_of("train", "valid")
    assert list(run.kb.splits) == ["train", "test"]
    assert result.mrr == mrr(run.model.bare, valid_in_train(kb))
    assert result.protocol.trained_on == ("train", "valid")


def test_all_together_the_weights_are_those_of_the_models_that_have_not_seen_valid(
    measurer: Measurer, kb: KnowledgeBase
) -> None:
    result = measured(measurer, "best/getd-tiny+memory+ensemble+valid")
    seeds = (0, 1, 2)
    blind = Ensemble([run_of(measurer, "best/getd-tiny", seed).model.bare for seed in seeds])
    weights = fit_weights(blind, Memory.from_facts(kb.split("train"), kb.n_entities), kb)
    assert result.memory == {name: values.model_dump() for name, values in weights.items()}

    both = join(kb.split("train"), kb.split("valid"))
    models = Ensemble([run_of(measurer, "best/getd-tiny+valid", seed).model.bare for seed in seeds])
    model = WithMemory(models, Memory.from_facts(both, kb.n_entities), weights)
    assert result.mrr == mrr(model, valid_in_train(kb))


def test_combined_rows_have_weights_of_models_that_have_not_seen_valid(
    measurer: Measurer, kb: KnowledgeBase
) -> None:
    result = measured(measurer, "combined/tiny+memory+valid")
    rows = ("best/getd-tiny", "best/encoder-tiny")
    blind = [run_of(measurer, row).model.bare for row in rows]
    weights = fit_members(blind, kb, [False, False]).weights
    memory = Memory.from_facts(kb.split("train"), kb.n_entities)
    memory_weights = fit_weights(combine_members(blind, weights), memory, kb)
    assert result.memory == {name: values.model_dump() for name, values in memory_weights.items()}

    both = join(kb.split("train"), kb.split("valid"))
    seeing = [run_of(measurer, f"{row}+valid").model.bare for row in rows]
    memory = Memory.from_facts(both, kb.n_entities)
    model = WithMemory(combine_members(seeing, weights), memory, memory_weights)
    assert result.mrr == mrr(model, valid_in_train(kb))
    assert (result.model, result.rows, result.protocol.members) == ("combined", rows, 2)
    assert result.protocol.member_weights is not None
    assert result.protocol.member_weights.fitted_on == "valid"


def test_combined_rows_alone_are_neither_of_their_members(
    measurer: Measurer, kb: KnowledgeBase
) -> None:
    result = measured(measurer, "combined/tiny")
    rows = ("best/getd-tiny", "best/encoder-tiny")
    models = [run_of(measurer, row).model.bare for row in rows]
    weights = fit_members(models, kb, [False, False]).weights
    assert result.mrr == mrr(combine_members(models, weights), kb)
    assert result.mrr not in [mrr(model, kb) for model in models]
    assert result.protocol.memory is None


def test_a_table_is_made_from_the_results_that_are_kept(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for number, result in enumerate(tables()):
        (tmp_path / "results" / f"{number}.json").write_text(json.dumps(result))

    row = find_row("claims")
    results = Measurer(tmp_path, tmp_path / "runs", lambda name: nullcontext(Callbacks()))
    table = results.measure(row, row.points[0])
    assert isinstance(table, Claims)
    assert table.claims == check_claims(index(tables()))
    assert {claim.verdict for claim in table.claims} > {"not measured"}

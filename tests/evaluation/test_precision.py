"""Scores in bf16 are those in fp32 up to their rounding, and the protocol says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from getd.errors import ConfigError, RunError
from getd.evaluation import precision
from getd.evaluation.evaluate import evaluate
from getd.evaluation.precision import (
    MIN_DIM,
    MIN_TABLE,
    dot_product_of,
    multiply,
    rounded,
    settle_precision,
)
from getd.evaluation.rank_scores import rank_scores
from getd.evaluation.ranks import rank_facts
from getd.evaluation.scoring import log_probabilities
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.memory.memory import Memory
from getd.memory.weights import MemoryWeights, SourceWeights
from getd.memory.with_memory import WithMemory
from getd.models.base import ModelSizes, ScoringModel
from getd.models.registry import make_model, model_settings
from getd.run import Run
from getd.runs.opened import OpenedRun
from tests.tiny import tiny_knowledge_base, untrained_getd

UNIT = 2.0**-8  # how far a number is rounded to bf16, as a share of it
KB = tiny_knowledge_base()
KNOWN = KB.known()


def with_memory(model: ScoringModel) -> ScoringModel:
    memory = Memory.from_facts(KB.split("train"), KB.n_entities)
    weights = {}
    for arity in KB.arities:
        for position in range(arity):
            sources = {
                name: SourceWeights(share=1.5, log_share=0.3)
                for name in memory.sources(arity, position)
            }
            weights[f"{arity}-{position}"] = MemoryWeights(scale=0.7, sources=sources)
    return WithMemory(model, memory, weights).eval()


MODELS = {"bare": untrained_getd(KB), "with memory": with_memory(untrained_getd(KB))}


def error_bound(query: Tensor, table: Tensor) -> Tensor:
    """Both factors and the score are rounded, sums hardly."""
    return 3.1 * UNIT * (query.abs() @ table.abs().T)


@pytest.mark.parametrize("dim", [1, 7, 64, 200])
def test_a_score_in_bf16_is_off_by_three_roundings_at_most(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    query = torch.randn(33, dim, generator=generator)
    table = torch.randn(501, dim, generator=generator)
    scores = multiply(query, rounded(table, "bf16"), torch.empty(33, 501))
    error = (scores.double() - query.double() @ table.double().T).abs()
    assert (error <= error_bound(query, table)).all()
    assert error.max() > 0
    assert torch.equal(multiply(query, table, torch.empty(33, 501)), torch.mm(query, table.T))


@pytest.mark.parametrize("chunk", [40, 10**6])
@pytest.mark.parametrize("name", MODELS)
def test_a_rank_in_bf16_moves_past_rivals_within_the_rounding_alone(name: str, chunk: int) -> None:
    model = MODELS[name]
    bare = dot_product_of(model)
    assert bare is not None
    for facts in KB.split("test").values():
        ranks = rank_facts(model, facts, KNOWN, chunk=chunk, precision="bf16")
        for position in range(facts.arity):
            with model.scoring():
                questions = facts.to_tensors()
                scores = model.score_candidates(*questions, position)
                query = bare.query(*questions, position)
                slack = 4 * error_bound(query, bare.candidates(position)).amax(dim=1)

            answers = facts.entities[:, position]
            known = KNOWN.lookup(facts.relation, facts.entities, position)
            bounds = [
                rank_scores(scores, answers, known, ties=ties, tolerance=slack).rank
                for ties in ("optimistic", "pessimistic")
            ]
            rank = ranks.rank[:, position]
            assert ((bounds[0] <= rank) & (rank <= bounds[1])).all()


@pytest.mark.parametrize("chunk", [40, 10**6])
def test_a_memory_is_added_to_products_as_the_model_adds_it(chunk: int) -> None:
    model = MODELS["with memory"]
    for facts in KB.split("test").values():
        ranks = rank_facts(model, facts, KNOWN, chunk=chunk)
        for position in range(facts.arity):
            with model.scoring():
                scores = model.score_candidates(*facts.to_tensors(), position)
            known = KNOWN.lookup(facts.relation, facts.entities, position)
            answers = facts.entities[:, position]
            expected = rank_scores(scores, answers, known, tolerance=1e-5 * scores.abs().max())
            assert np.array_equal(ranks.rank[:, position], expected.rank)


def test_equal_vectors_are_level_in_bf16() -> None:
    facts = Facts(np.zeros(5, dtype=np.int64), np.arange(10).reshape(5, 2))
    for dim in (3, 50, 133):
        sizes = ModelSizes(n_entities=77, n_relations=1, arities=(2,))
        model = make_model("distmult", model_settings("distmult", {"entity_dim": dim}), sizes)
        with torch.no_grad():
            model.entity.weight.copy_(model.entity.weight[:1].clone())
        for chunk in (16 * 30, 10**6):
            ranks = rank_facts(model, facts, KnownAnswers.build([]), chunk=chunk, precision="bf16")
            assert (ranks.rank == 39).all()


@pytest.mark.parametrize("name", MODELS)
def test_log_probabilities_in_bf16_are_off_by_the_rounding_of_the_sum_alone(name: str) -> None:
    for facts in KB.split("test").values():
        exact, in_bf16 = (
            log_probabilities(MODELS[name], facts, KNOWN, 0.8, precision=each)
            for each in ("fp32", "bf16")
        )
        assert 0 < np.abs(exact - in_bf16).max() < 0.02


@pytest.mark.parametrize("memory", [False, True])
def test_the_mrr_of_a_trained_model_changes_by_less_than_a_hundredth(
    trained_demo: OpenedRun, memory: bool
) -> None:
    model, kb = trained_demo.model, trained_demo.kb
    model = model if memory else model.bare
    exact = evaluate(model, kb, by=(), baselines=False)
    in_bf16 = evaluate(model, kb, by=(), baselines=False, precision="bf16")
    assert in_bf16.mrr == pytest.approx(exact.mrr, abs=0.01)
    assert in_bf16.mrr != exact.mrr

    assert "precision" not in exact.as_dict()["protocol"]
    assert in_bf16.as_dict()["protocol"]["precision"] == "bf16"
    assert "scores in bf16" in in_bf16.protocol.sentence()


def test_completions_in_bf16_are_those_in_fp32(trained_demo: OpenedRun, tmp_path: Path) -> None:
    run = Run(trained_demo)
    confidence = {}
    for name in ("fp32", "bf16"):
        out = tmp_path / f"{name}.tsv"
        run.complete("plays for", out, top=50, min_confidence=0.1, precision=name)  # type: ignore[arg-type]
        rows = [line.split("\t") for line in out.read_text().splitlines()]
        confidence[name] = {tuple(row[:-2]): float(row[-2]) for row in rows}

    in_both = confidence["fp32"].keys() & confidence["bf16"].keys()
    assert len(in_both) > 0.9 * len(confidence["fp32"])
    for fact in in_both:
        assert confidence["bf16"][fact] == pytest.approx(confidence["fp32"][fact], abs=0.03)
    assert confidence["bf16"] != confidence["fp32"]


def test_a_completion_is_not_resumed_in_another_precision(
    trained_demo: OpenedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getd.prediction.complete.BATCH_ROWS", 100)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    run = Run(trained_demo)
    out = tmp_path / "facts.tsv"
    with pytest.raises(KeyboardInterrupt):
        run.complete("plays for", out, progress=stop)
    with pytest.raises(RunError, match="begun with another run or other settings"):
        run.complete("plays for", out, precision="bf16")


def test_models_that_are_no_dot_products_score_in_fp32() -> None:
    sizes = ModelSizes(KB.n_entities, KB.n_relations, KB.arities)
    model = make_model("nalp", model_settings("nalp", {}), sizes)
    assert settle_precision("bf16", model) == "fp32"


@pytest.mark.parametrize(
    ("n_entities", "dim", "is_faster", "expected"),
    [
        (MIN_TABLE // 64, 64, True, "bf16"),
        (MIN_TABLE // 64, 64, False, "fp32"),
        (MIN_TABLE // 64 - 1, 64, True, "fp32"),
        (MIN_TABLE, MIN_DIM - 1, True, "fp32"),
    ],
)
def test_auto_is_bf16_for_large_tables_on_machines_that_are_faster(
    monkeypatch: pytest.MonkeyPatch, n_entities: int, dim: int, is_faster: bool, expected: str
) -> None:
    monkeypatch.setattr(precision, "is_bf16_faster", lambda device: is_faster)
    sizes = ModelSizes(n_entities=n_entities, n_relations=1, arities=(2,))
    model = make_model("distmult", model_settings("distmult", {"entity_dim": dim}), sizes)
    assert settle_precision("auto", model) == expected


def test_another_precision_is_refused() -> None:
    message = r"^precision: expected one of fp32, bf16, auto, found 'fp16'; did you mean 'bf16'\?$"
    with pytest.raises(ConfigError, match=message):
        evaluate(MODELS["bare"], KB, precision="fp16")  # type: ignore[arg-type]

"""Products are rounded where that was chosen, or where the machine is faster with it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import getd
from getd.errors import RunError
from getd.evaluation import precision
from getd.evaluation.precision import MIN_TABLE, is_bf16_faster, measure_speedup
from getd.facts.facts import Blocks, Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.registry import MODELS, make_model, model_settings
from getd.runs.config import TrainSettings
from getd.training.precision import choose_precision
from getd.training.regimes import REGIMES
from getd.training.regimes.base import Batch
from tests.models.test_every_model import FORMS
from tests.tiny import tiny_knowledge_base

CPU = torch.device("cpu")
DOT_PRODUCTS = [name for name in FORMS if issubclass(MODELS[FORMS[name][0]].model, DotProductModel)]
CONFIG: dict[str, Any] = {
    "model": {"name": "getd", "entity_dim": 4, "ring_ranks": 2, "query_dropout": 0.1},
    "training": {"epochs": 2, "batch_size": 32, "threads": 1, "patience": 0},
}


def table_of(numbers: int) -> ScoringModel:
    sizes = ModelSizes(n_entities=numbers // 8, n_relations=1, arities=(2,))
    return make_model("distmult", model_settings("distmult", {"entity_dim": 8}), sizes)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's cache that is empty, on a machine that has bf16."""
    path = tmp_path / "cache" / "bf16.json"
    monkeypatch.setattr(precision, "user_cache", lambda name: path.with_name(name))
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    return path


def gradients(form: str, settings: TrainSettings) -> dict[str, Tensor]:
    """The gradients of a step, all with the same weights, batch and dropout."""
    name, values = FORMS[form]
    values = {**values, **{key: 16 for key in ("entity_dim", "relation_dim") if key in values}}
    arity = 2 if MODELS[name].model.binary_only else 3
    rng = np.random.default_rng(0)
    facts = Facts(rng.integers(0, 3, 200), rng.integers(0, 9, (200, arity)))
    blocks: Blocks = {arity: facts}
    regime = REGIMES[settings.regime](blocks, KnownAnswers.build([blocks]), 9, settings, CPU)

    generator = torch.Generator().manual_seed(1)
    model = make_model(name, model_settings(name, values), ModelSizes(9, 3, (arity,)), generator)
    torch.manual_seed(0)
    blocks_of_questions = [0, -1] if settings.regime == "kvsall" else [0]
    grads: dict[str, Tensor] = {}
    for block in blocks_of_questions:  # the last one of kvsall asks for relations
        model.zero_grad()
        regime.prepare(Batch(block, rng.permutation(regime.sizes[block]))).backward(model)
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:
                grads[f"{block} {key}"] = parameter.grad.to_dense().clone()
    return grads


@pytest.mark.parametrize("regime", ["1vsall", "kvsall", "sampled"])
@pytest.mark.parametrize("form", DOT_PRODUCTS)
def test_the_gradients_of_a_step_in_bf16_are_close_to_the_exact_ones(
    form: str, regime: str
) -> None:
    settings = TrainSettings(
        regime=regime, precision="fp32", label_smoothing=0.1, relation_loss=0.5
    )
    exact = gradients(form, settings)
    rounded = gradients(form, settings.model_copy(update={"precision": "bf16"}))

    assert exact.keys() == rounded.keys()
    differences = [exact[key] - rounded[key] for key in exact]
    error = torch.cat([each.flatten() for each in differences]).norm()
    size = torch.cat([each.flatten() for each in exact.values()]).norm()
    # The layer norms of the encoder, whose vectors are small at the start, enlarge the rounding.
    bound = 0.15 if form.startswith("encoder") else 0.05
    assert 0 < error < bound * size
    assert all(each.dtype == torch.float32 for each in rounded.values())


def test_what_is_chosen_is_taken_whatever_the_machine(cache: Path) -> None:
    model = table_of(8)
    for name in ("fp32", "bf16"):
        assert choose_precision(TrainSettings(precision=name), model, CPU) == name
    assert not cache.exists()


@pytest.mark.parametrize(("speedup", "expected"), [(1.26, "bf16"), (1.24, "fp32")])
def test_auto_is_what_is_faster_for_large_tables(
    cache: Path, monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str
) -> None:
    monkeypatch.setattr(precision, "measure_speedup", lambda: speedup)
    settings = TrainSettings()
    assert choose_precision(settings, table_of(MIN_TABLE), CPU) == expected
    assert choose_precision(settings, table_of(MIN_TABLE - 8), CPU) == "fp32"
    assert choose_precision(TrainSettings(kvsall_loss="bce"), table_of(MIN_TABLE), CPU) == "fp32"


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ({"negatives": MIN_TABLE // 8}, "bf16"),
        ({"negatives": MIN_TABLE // 8 - 1}, "fp32"),
        ({"negatives": MIN_TABLE // 8, "shared_negatives": False}, "fp32"),
    ],
    ids=["many", "few", "not shared"],
)
def test_drawn_candidates_count_where_all_questions_share_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any], expected: str
) -> None:
    monkeypatch.setattr(precision, "measure_speedup", lambda: 2.0)
    settings = TrainSettings(regime="sampled", **drawn)
    assert choose_precision(settings, table_of(2 * MIN_TABLE), CPU) == expected
    assert choose_precision(settings, table_of(MIN_TABLE - 8), CPU) == "fp32"


def test_the_speedup_compares_the_shortest_times_of_both_precisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = precision.REPEATS - 1
    readings = []
    for number, seconds in enumerate([9.0, *[3.0] * others, 8.0, *[2.0] * others]):
        readings += [100.0 * number, 100.0 * number + seconds]

    clock = SimpleNamespace(perf_counter=iter(readings).__next__)
    monkeypatch.setattr(precision, "time", clock)
    monkeypatch.setattr(precision, "SHAPE", (2, 2, 2))
    assert measure_speedup() == 1.5


def test_a_machine_is_measured_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speedups = iter([2.0, 1.0])
    monkeypatch.setattr(precision, "measure_speedup", lambda: next(speedups))
    assert is_bf16_faster(CPU)
    assert is_bf16_faster(CPU)
    assert list(json.loads(cache.read_text()).values()) == [2.0]

    # Other instructions make another machine of it.
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert not is_bf16_faster(CPU)
    assert list(json.loads(cache.read_text()).values()) == [2.0, 1.0]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": "b"}'])
def test_a_cache_that_says_nothing_is_written_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    cache.parent.mkdir()
    cache.write_text(content)
    monkeypatch.setattr(precision, "measure_speedup", lambda: 2.0)
    assert is_bf16_faster(CPU)
    assert 2.0 in json.loads(cache.read_text()).values()


def test_a_cache_that_cannot_be_written_does_no_harm(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.write_text("a file where the folder should be")
    monkeypatch.setattr(precision, "measure_speedup", lambda: 2.0)
    assert is_bf16_faster(CPU)


def test_a_machine_without_bf16_is_not_measured(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda device: False)
    assert not is_bf16_faster(CPU)
    assert not cache.exists()
    assert measure_speedup() > 0


def test_a_run_says_how_it_was_trained_and_resumes_so(tmp_path: Path) -> None:
    kb = tiny_knowledge_base()
    run = getd.train(kb, out=tmp_path / "run", config=CONFIG)
    assert run.folder.read_config()["training"]["precision"] == "fp32"  # too small for bf16
    getd.train(kb, out=tmp_path / "run", resume=True, epochs=3, precision="auto")
    with pytest.raises(RunError, match=r"begun with training\.precision = fp32, found bf16"):
        getd.train(kb, out=tmp_path / "run", resume=True, epochs=4, precision="bf16")

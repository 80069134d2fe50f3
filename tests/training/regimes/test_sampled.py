"""Training against few candidates: the more are drawn, the closer the loss is to that of all."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import getd
from getd.errors import ConfigError
from getd.facts.facts import Facts
from getd.facts.known_answers import KnownAnswers
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.registry import MODELS, make_model, model_settings
from getd.runs.config import TrainSettings
from getd.training.callbacks import Callbacks, Interrupted
from getd.training.loop import Trainer
from getd.training.regimes.base import Batch, Regime
from getd.training.regimes.one_vs_all import OneVsAll
from getd.training.regimes.sampled import Sampled
from tests.models.test_every_model import FORMS

N_ENTITIES, N_RELATIONS, CPU = 60, 3, torch.device("cpu")


def facts_of(arity: int, seed: int = 0) -> dict[int, Facts]:
    rng = np.random.default_rng(seed)
    return {
        arity: Facts(
            rng.integers(0, N_RELATIONS, 400), rng.integers(0, N_ENTITIES // 4, (400, arity))
        )
    }


def known_of(blocks: dict[int, Facts]) -> KnownAnswers:
    return KnownAnswers.build([blocks])


def small_model(form: str, arity: int) -> ScoringModel:
    name, values = FORMS[form]
    generator = torch.Generator().manual_seed(1)
    return make_model(
        name, model_settings(name, values), ModelSizes(N_ENTITIES, N_RELATIONS, (arity,)), generator
    ).double()


def spread(model: ScoringModel) -> None:
    """Make scores differ."""
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.weight.data.mul_(7)


def step(regime: Regime, model: ScoringModel, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    """The loss and the gradients of a batch."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(0)  # dropout
    loss = regime.prepare(batch).backward(model)
    return loss, {
        name: p.grad.to_dense() for name, p in model.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "more", [{}, {"label_smoothing": 0.2, "relation_loss": 0.5, "n3": 0.1}], ids=["paper", "more"]
)
def test_with_all_entities_as_negatives_the_loss_is_that_of_1vsall(
    form: str, more: dict[str, float]
) -> None:
    arity = 2 if MODELS[FORMS[form][0]].model.binary_only else 3
    blocks, model = facts_of(arity), small_model(form, arity)
    model.train(
        isinstance(model, DotProductModel)
    )  # else positions are normalised one by one in 1vsall
    known, batch = known_of(blocks), Batch(0, np.array([3, 17, 200, 8, 8]))
    everything = TrainSettings(regime="sampled", negatives=N_ENTITIES, **more)
    sampled = step(Sampled(blocks, known, N_ENTITIES, everything, CPU), model, batch)
    exact = step(OneVsAll(blocks, known, N_ENTITIES, TrainSettings(**more), CPU), model, batch)
    assert sampled[0] == pytest.approx(exact[0])
    assert sampled[1].keys() == exact[1].keys()
    for name, grad in exact[1].items():
        assert_close(sampled[1][name], grad, rtol=1e-6, atol=1e-8, msg=name)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("power", [0.0, 0.75])
def test_the_sum_over_drawn_negatives_is_an_unbiased_estimate_of_that_over_all(
    shared: bool, power: float
) -> None:
    blocks, model = facts_of(3), small_model("n-cp", 3).eval()
    spread(model)
    known, rows = known_of(blocks), np.array([3, 17, 200])
    copies = 1 if shared else 100  # in a batch; each draws negatives of its own
    settings = TrainSettings(
        regime="sampled", negatives=20, shared_negatives=shared, negative_power=power
    )
    regime = Sampled(blocks, known, N_ENTITIES, settings, CPU)
    facts = blocks[3].take(rows)
    exact = torch.zeros(3, 3, dtype=torch.float64)
    for i in range(3):
        for position in range(3):
            question = torch.tensor(facts.relation[[i]]), torch.tensor(facts.entities[[i]])
            scores = model.score_candidates(*question, position)[0].detach()
            out = known.lookup(facts.relation[[i]], facts.entities[[i]], position).values.tolist()
            exact[i, position] = sum(
                math.exp(float(scores[c])) for c in range(N_ENTITIES) if c not in out
            )
    estimates = []
    for draw in range(3000 // copies):
        with torch.no_grad():
            scored = regime.prepare(Batch(0, np.tile(rows, copies), (1, draw))).scores(model)
        terms = (scored.negative + scored.log_weights).exp().contiguous()
        terms.view(-1)[scored.left_out] = 0
        estimates.append(terms.sum(dim=2).view(copies, 3, 3))
    sums = torch.cat(estimates)
    error = sums.std(dim=0) / len(sums) ** 0.5
    assert ((sums.mean(dim=0) - exact).abs() < 4 * error).all()
    assert (error < 0.1 * exact).all()  # else the line above would say little
    assert exact.std() > 0.1 * exact.mean()


@pytest.mark.parametrize("form", ["getd", "n-cp", "getd+reciprocal"])
def test_the_gradient_tends_to_that_of_1vsall_as_samples_grow(form: str) -> None:
    blocks, model = facts_of(3), small_model(form, 3).eval()
    known, rows = known_of(blocks), np.arange(40)
    _, exact = step(
        OneVsAll(blocks, known, N_ENTITIES, TrainSettings(), CPU), model, Batch(0, rows)
    )

    def distance(negatives: int) -> float:
        regime = Sampled(
            blocks, known, N_ENTITIES, TrainSettings(regime="sampled", negatives=negatives), CPU
        )
        apart = []
        for draw in range(20):
            _, grads = step(regime, model, Batch(0, rows, (1, draw)))
            apart.append(
                sum(float((grads[name] - grad).square().sum()) for name, grad in exact.items())
            )
        return (np.mean(apart) / sum(float(grad.square().sum()) for grad in exact.values())) ** 0.5

    few, more, many = (distance(negatives) for negatives in (3, 12, 48))
    assert more < 0.7 * few  # half, were there no bias
    assert many < 0.7 * more
    assert many < 0.35 * few


def test_a_cache_finds_harder_negatives_than_chance() -> None:
    blocks, model = facts_of(2), small_model("n-cp", 2).eval()
    spread(model)
    settings = TrainSettings(
        regime="sampled", negatives=20, shared_negatives=False, hard_negatives=5
    )
    regime, rows = Sampled(blocks, known_of(blocks), N_ENTITIES, settings, CPU), np.arange(100)
    means = []
    for draw in range(10):
        scored = regime.prepare(Batch(0, rows, (1, draw))).scores(model)
        assert scored.negative.shape == (100, 2, 5)
        means.append(scored.negative.mean().item())
        if draw:
            assert len(scored.left_out) < 20  # known answers do not stay
    assert means[-1] > means[0] + 0.2


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.parametrize("form", ["getd", "n-cp"])
def test_a_step_changes_the_rows_that_were_drawn_alone(form: str, optimizer: str) -> None:
    blocks, model = facts_of(3), small_model(form, 3)
    settings = TrainSettings(
        regime="sampled",
        negatives=2,
        optimizer=optimizer,
        ema=0.9,
        n3=0.1,
        clip=1.0,
        learning_rate=0.1,
    )
    regime = Sampled(blocks, known_of(blocks), N_ENTITIES, settings, CPU)
    trainer, batch = Trainer(model, regime, None, settings), Batch(0, np.array([3, 17]))
    prepared = regime.prepare(batch)
    drawn = set(prepared.facts.entities.flatten().tolist())
    drawn |= set(prepared.negatives.ids.flatten().tolist())
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trainer.step(prepared)
    tables = [name for name in before if "entity" in name.split(".") and before[name].dim() == 2]
    changed = set()
    for name in tables:
        changed |= set(
            torch.nonzero((model.state_dict()[name] != before[name]).any(dim=1)).flatten().tolist()
        )
    assert changed == drawn
    assert trainer.average is not None
    for name in tables:
        kept = torch.tensor(sorted(set(range(N_ENTITIES)) - drawn))
        assert torch.equal(trainer.average.average[name][kept], before[name][kept])


@pytest.mark.parametrize(
    "more",
    [
        {"sampled_loss": "softmax", "negative_power": 0.5, "optimizer": "adagrad"},
        {"sampled_loss": "margin", "shared_negatives": False, "hard_negatives": 4, "negatives": 8},
        {"sampled_loss": "logistic", "self_adversarial": 0.5},
    ],
    ids=["adagrad", "cache", "logistic"],
)
def test_a_run_that_was_interrupted_ends_with_the_same_weights(
    more: dict[str, object], tmp_path: Path
) -> None:
    kb = getd.load("Synthetic10-3")
    settings = {
        "regime": "sampled",
        "negatives": 4,
        "batch_size": 64,
        "epochs": 3,
        "ema": 0.9,
        **more,
    }
    whole = getd.train(kb, out=tmp_path / "whole", **settings)

    steps = 0

    def stop(epoch: int, done: int, total: int) -> None:
        nonlocal steps
        steps += 1

    with pytest.raises(Interrupted):
        getd.train(
            kb,
            out=tmp_path / "parts",
            callbacks=Callbacks(stop, should_stop=lambda: steps == 10),
            **settings,
        )
    parts = getd.train(kb, out=tmp_path / "parts", resume=True)
    assert steps == 10
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name]), name


@pytest.mark.parametrize("loss", ["softmax", "margin", "logistic"])
def test_every_loss_learns(loss: str, tmp_path: Path) -> None:
    kb = getd.load("demo")
    settings = {
        "sampled_loss": loss,
        "regime": "sampled",
        "negatives": 64,
        "epochs": 15,
        "learning_rate": 0.01,
    }
    run = getd.train(
        kb, "distmult", tmp_path / "run", config={"model": {"entity_dim": 32}}, **settings
    )
    assert run.evaluate("test").mrr > 0.3


def test_settings_that_do_not_go_together_are_refused() -> None:
    kb = getd.load("demo")
    with pytest.raises(
        ConfigError, match=r"self_adversarial goes with the sampled_loss margin or logistic"
    ):
        getd.train(kb, regime="sampled", self_adversarial=1.0)
    with pytest.raises(ConfigError, match=r"hard_negatives goes with shared_negatives = false"):
        getd.train(kb, regime="sampled", hard_negatives=8)

"""The fused loss equals its formula, its gradients equal autograd's, and tiles change nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from getd.training.losses import fused_softmax as loss_module
from getd.training.losses.fused_softmax import Gradients, TileShape, softmax_gradients
from tests.training.losses.reference_softmax import softmax_by_hand
from tests.training.losses.test_multi_answer import multi_answer_loss


class _Loss(torch.autograd.Function):
    """The loss with its gradients, for autograd to check."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, table: Tensor, *rest: Any) -> Tensor:
        into = Gradients(torch.full_like(query, torch.nan), torch.zeros_like(table))
        loss = softmax_gradients(query, table, *rest, 1.0, into)
        ctx.save_for_backward(*into)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        query_grad, table_grad = ctx.saved_tensors
        return grads[0] * query_grad, grads[0] * table_grad, None, None, None


def filtered_softmax_loss(
    query: Tensor,
    table: Tensor,
    target: Tensor,
    left_out: tuple[Tensor, Tensor],
    smoothing: float = 0.0,
) -> Tensor:
    loss: Tensor = _Loss.apply(query, table, target, left_out, smoothing)
    return loss


def example(smoothing: float = 0.0) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor], float]:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(5, 3, dtype=torch.float64, generator=generator).requires_grad_()
    table = torch.randn(7, 3, dtype=torch.float64, generator=generator).requires_grad_()
    left_out = (torch.tensor([0, 0, 2, 4]), torch.tensor([1, 5, 0, 6]))
    return query, table, torch.tensor([0, 1, 2, 3, 4]), left_out, smoothing


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_its_formula(smoothing: float) -> None:
    arguments = example(smoothing)
    assert filtered_softmax_loss(*arguments).item() == pytest.approx(softmax_by_hand(*arguments))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(1, 7), (2, 7), (5, 7), (3, 2), (5, 1), (2, 3)])
@pytest.mark.parametrize("scale", [1, 100])
def test_gradients_are_those_of_the_formula_whatever_the_tiles(
    monkeypatch: pytest.MonkeyPatch, smoothing: float, shape: tuple[int, int], scale: int
) -> None:
    monkeypatch.setattr(loss_module, "tile_shape", lambda *_: TileShape(*shape))
    query, table, *rest = example(smoothing)
    query = (scale * query).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda q, t: filtered_softmax_loss(q, t, *rest), (query, table))
    assert filtered_softmax_loss(query, table, *rest).item() == pytest.approx(
        softmax_by_hand(query, table, *rest)
    )


def test_with_all_rivals_left_out_there_is_nothing_to_lose() -> None:
    query, table = torch.ones(1, 2), torch.randn(3, 2)
    left_out = (torch.tensor([0, 0]), torch.tensor([0, 2]))
    assert filtered_softmax_loss(query, table, torch.tensor([1]), left_out).item() == pytest.approx(
        0, abs=1e-6
    )


def test_with_one_answer_the_softmax_losses_agree() -> None:
    query, table, target, _, _ = example()
    nothing = (torch.tensor([], dtype=torch.long),) * 2
    labels = torch.nn.functional.one_hot(target, len(table)).double()
    one = filtered_softmax_loss(query, table, target, nothing, 0.2) / len(query)
    assert one.item() == pytest.approx(
        multi_answer_loss(query @ table.T, labels, "softmax", 0.2).item()
    )


@pytest.mark.parametrize("shape", [(7, 40), (3, 40), (7, 9)])
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_beyond_what_floats_exponentiate_do_no_harm(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], sign: int
) -> None:
    """The first attempt leaves infinities (or zeros) behind; the second overwrites them."""
    monkeypatch.setattr(loss_module, "tile_shape", lambda *_: TileShape(*shape))
    generator = torch.Generator().manual_seed(0)
    query = 20 * torch.rand(7, 5, generator=generator).requires_grad_()
    table = (sign * 20 * torch.rand(40, 5, generator=generator)).requires_grad_()
    assert not torch.isfinite((query @ table.T).exp().sum(dim=1).log()).all()
    target, nothing = torch.arange(7), (torch.zeros(0, dtype=torch.long),) * 2
    plain = torch.nn.functional.cross_entropy(query @ table.T, target, reduction="sum")
    expected = torch.autograd.grad(plain, [query, table])
    into = Gradients(torch.empty_like(query), torch.empty_like(table))
    with torch.no_grad():
        loss = softmax_gradients(query, table, target, nothing, 0.0, 1.0, into)
    assert loss.item() == pytest.approx(plain.item(), rel=1e-5)
    for actual, grad in zip(into, expected, strict=True):
        assert torch.allclose(actual, grad, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(48, 300), (20, 300), (48, 70)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_several_answers", [False, True])
def test_in_bf16_the_loss_is_within_a_thousandth_and_its_gradients_within_a_hundredth(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int],
    smoothing: float,
    has_several_answers: bool,
) -> None:
    monkeypatch.setattr(loss_module, "tile_shape", lambda *_: TileShape(*shape))
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(48, 20, generator=generator)
    table = 0.5 * torch.randn(300, 20, generator=generator)
    target: Any = torch.arange(48)
    if has_several_answers:
        target = torch.arange(48).repeat_interleave(2), torch.arange(96)
    left_out = (torch.tensor([0, 0, 30, 47]), torch.tensor([250, 299, 200, 150]))

    results = []
    for in_bf16 in (False, True):
        into = Gradients(torch.full_like(query, torch.nan), torch.full_like(table, torch.nan))
        arguments = (query, table, target, left_out, smoothing, 1 / 48)
        loss = softmax_gradients(*arguments, into, in_bf16)
        results.append((loss, into))
    (exact_loss, exact), (loss, rounded) = results
    assert loss.item() == pytest.approx(exact_loss.item(), rel=1e-3)
    for actual, expected in zip(rounded, exact, strict=True):
        assert actual.dtype == torch.float32
        error = torch.linalg.vector_norm(actual - expected) / torch.linalg.vector_norm(expected)
        assert 1e-6 < error.item() < 1e-2


def test_scores_beyond_what_floats_exponentiate_are_not_rounded() -> None:
    generator = torch.Generator().manual_seed(0)
    query = 20 * torch.rand(7, 5, generator=generator)
    table = 20 * torch.rand(40, 5, generator=generator)
    nothing = (torch.zeros(0, dtype=torch.long),) * 2
    results = []
    for in_bf16 in (False, True):
        into = Gradients(torch.empty_like(query), torch.empty_like(table))
        arguments = (query, table, torch.arange(7), nothing, 0.0, 1.0)
        results.append((softmax_gradients(*arguments, into, in_bf16), *into))
    for exact, rounded in zip(*results, strict=True):
        assert torch.equal(exact, rounded)

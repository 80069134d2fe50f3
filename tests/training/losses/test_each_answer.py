"""Each answer alone against all that are no answers: the loss of 1vsall, question by question."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.runs.config import TrainSettings
from getd.training.losses.base import LabelledScores
from getd.training.losses.each_answer import each_answer_gradients
from getd.training.losses.fused_softmax import Gradients
from getd.training.losses.multi_answer import each_answer
from getd.training.losses.softmax import softmax_loss

NOTHING = (torch.zeros(0, dtype=torch.int64),) * 2


def questions(n_candidates: int = 9, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, candidates, and labels: 1, 3, 2 and all answers."""
    generator = torch.Generator().manual_seed(0)
    query = scale * torch.randn(4, 3, dtype=torch.float64, generator=generator)
    table = torch.randn(n_candidates, 3, dtype=torch.float64, generator=generator)
    labels = torch.zeros(4, n_candidates, dtype=torch.float64)
    labels[0, 4] = labels[1, [0, 2, 8]] = labels[2, [5, 6]] = 1
    labels[3] = 1
    return query, table, labels


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_it_is_the_loss_of_all_facts_in_which_a_question_weighs_its_answers(
    smoothing: float,
) -> None:
    query, table, labels = questions()
    scores = query @ table.T
    rows, answers = labels.nonzero(as_tuple=True)
    left_out = labels[rows].clone()
    left_out[torch.arange(len(rows)), answers] = 0
    expected = softmax_loss(scores[rows], answers, left_out.nonzero(as_tuple=True), smoothing)

    counts = labels.sum(dim=1, keepdim=True)
    batch = LabelledScores(scores, labels, counts / counts.sum())
    assert_close(each_answer(batch, TrainSettings(label_smoothing=smoothing)), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 60.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_kernel_leaves_the_gradients_of_the_formula(
    smoothing: float, scale: float, weighted: bool
) -> None:
    """Scores of hundreds have exponentials that no sum can hold."""
    query, table, labels = questions(scale=scale)
    weights = torch.tensor([[0.1], [0.4], [0.2], [0.3]], dtype=torch.float64)
    given = weights if weighted else 0.25
    into = Gradients(torch.empty_like(query), torch.empty_like(table))
    pairs = labels.nonzero(as_tuple=True)
    value = each_answer_gradients(query, table, pairs, NOTHING, smoothing, given, into)

    leaves = [query.requires_grad_(), table.requires_grad_()]
    batch = LabelledScores(query @ table.T, labels, weights if weighted else None)
    expected = each_answer(batch, TrainSettings(label_smoothing=smoothing))
    assert_close(value, expected.detach())
    for grad, leaf in zip(into, torch.autograd.grad(expected, leaves), strict=True):
        assert_close(grad, leaf)


@pytest.mark.parametrize(("in_bf16", "error"), [(False, 1e-5), (True, 0.05)])
def test_single_precision_is_close_to_double(in_bf16: bool, error: float) -> None:
    query, table, labels = questions()
    weights = torch.full((4, 1), 0.25, dtype=torch.float64)
    results = []
    for q, t, rounded in ((query, table, False), (query.float(), table.float(), in_bf16)):
        into = Gradients(torch.empty_like(q), torch.empty_like(t))
        pairs = labels.nonzero(as_tuple=True)
        value = each_answer_gradients(q, t, pairs, NOTHING, 0.1, weights, into, rounded)
        assert {value.dtype, into.query.dtype, into.table.dtype} == {q.dtype}
        results.append((value, *into))
    for exact, close in zip(*results, strict=True):
        assert (exact - close).norm() < error * exact.norm()


def test_tiles_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    query, table, labels = questions(n_candidates=40)
    pairs = labels.nonzero(as_tuple=True)
    results = []
    for bytes_of_cache in (1 << 20, 32):
        monkeypatch.setattr(
            "getd.training.losses.fused_softmax._cache_bytes", lambda size=bytes_of_cache: size
        )
        monkeypatch.setattr("getd.training.losses.fused_softmax.MAX_ROWS", 3)
        into = Gradients(torch.empty_like(query), torch.empty_like(table))
        value = each_answer_gradients(query, table, pairs, NOTHING, 0.1, 0.25, into)
        results.append((value, *into))
    for one, other in zip(*results, strict=True):
        assert_close(one, other)

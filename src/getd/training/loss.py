r"""The paper's loss (eq. 8 and 9): a softmax over all candidates that make no other training fact true.

.. math::
    -\phi_t + \log \sum_{c \in C} e^{\phi_c}, \qquad
    C = \{t\} \cup \{c : c \text{ makes no training fact true}\}

Scores are made, used and forgotten in chunks of rows, gradients with them, so memory holds one chunk whatever the
batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 22  # scores in memory at a time


class _FilteredSoftmax(torch.autograd.Function):
    """The sum of the losses of all rows; its gradients are computed with it."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, table: Tensor, target: Tensor, left_out: tuple[Tensor, Tensor], smoothing: float
    ) -> Tensor:
        rows, columns = left_out
        query_grad, table_grad = torch.empty_like(query), torch.zeros_like(table)
        total = query.new_zeros(())
        step = max(1, CHUNK // len(table))
        for start in range(0, len(query), step):
            stop = min(start + step, len(query))
            first, last = torch.searchsorted(rows, torch.tensor([start, stop], device=rows.device)).tolist()
            filtered = (rows[first:last] - start, columns[first:last])
            part, slope = _rows(query[start:stop] @ table.T, target[start:stop], filtered, smoothing)
            total = total + part
            torch.mm(slope, table, out=query_grad[start:stop])
            table_grad.addmm_(slope.T, query[start:stop])
        ctx.save_for_backward(query_grad, table_grad)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        query_grad, table_grad = ctx.saved_tensors
        return grad * query_grad, grad * table_grad, None, None, None


def _rows(scores: Tensor, target: Tensor, filtered: tuple[Tensor, Tensor], smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed loss of some rows and its derivative by their scores, which it overwrites."""
    at_target = target[:, None]
    wanted = scores.gather(1, at_target)
    mean, share = None, None
    if smoothing:
        n_left = scores.shape[1] - torch.bincount(filtered[0], minlength=len(scores)).to(scores.dtype)
        removed = scores.new_zeros(len(scores)).index_add_(0, filtered[0], scores[filtered])
        mean, share = (scores.sum(dim=1) - removed) / n_left, smoothing / n_left
    scores[filtered] = -torch.inf
    log_sum = torch.logsumexp(scores, dim=1, keepdim=True)
    loss = (log_sum - (1 - smoothing) * wanted).sum()
    slope = scores.sub_(log_sum).exp_()
    if mean is not None and share is not None:
        loss = loss - smoothing * mean.sum()
        slope -= share[:, None]
        slope[filtered] = 0
    slope.scatter_add_(1, at_target, slope.new_full((len(slope), 1), smoothing - 1))
    return loss, slope


def filtered_softmax_loss(
    query: Tensor, table: Tensor, target: Tensor, left_out: tuple[Tensor, Tensor], smoothing: float = 0.0
) -> Tensor:
    """The summed loss of questions.

    Parameters
    ----------
    query
        ``(b, d)``, one vector a question.
    table
        ``(n, d)``, one vector a candidate.
    target
        ``(b,)``, the right answer of each.
    left_out
        Rows (ascending) and columns of the candidates that take no part; the target must not be among them.
    smoothing
        Weight that goes to all candidates that take part, alike; the rest stays on the target.

    Examples
    --------
    >>> one = torch.tensor([[1.0]])
    >>> nothing = (torch.tensor([], dtype=torch.long),) * 2
    >>> filtered_softmax_loss(one, torch.zeros(4, 1), torch.tensor([2]), nothing).exp().item()  # chance: 1 in 4
    4.0
    """
    loss: Tensor = _FilteredSoftmax.apply(query, table, target, left_out, smoothing)  # type: ignore[no-untyped-call]
    return loss


def multi_answer_loss(scores: Tensor, labels: Tensor, kind: str, smoothing: float = 0.0) -> Tensor:
    """The mean loss of questions with all their answers, ``labels`` a 0/1 matrix like ``scores``.

    ``softmax`` is the cross entropy to the uniform distribution over the answers, ``bce`` the binary one of each score,
    ``bce-over-softmax`` the binary one of the softmax of the scores.
    """
    if kind == "softmax":
        wanted = labels / labels.sum(dim=1, keepdim=True)
        wanted = (1 - smoothing) * wanted + smoothing / labels.shape[1]
        return -(wanted * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()
    labels = (1 - smoothing) * labels + smoothing / labels.shape[1]
    if kind == "bce":
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
    # fidelity: the authors take BCE over softmax; see docs/fidelity.md#loss
    return torch.nn.functional.binary_cross_entropy(torch.softmax(scores, dim=1), labels)

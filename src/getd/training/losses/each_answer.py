r"""Each answer of a question alone against all that are no answers, fused with the scoring.

.. math::
    \frac{1}{|Y|} \sum_{t \in Y} \Bigl( -\phi_t + \log\bigl(e^{\phi_t} + Z\bigr) \Bigr), \qquad
    Z = \sum_{c \notin Y} e^{\phi_c}

This is the paper's loss, as :mod:`~getd.training.losses.fused_softmax` computes it for each fact;
here all answers of a question share the scores and the sum :math:`Z`.
"""

import torch
from torch import Tensor

from getd.training.losses.base import Pairs, Weight
from getd.training.losses.fused_softmax import (
    MAX_LOG_SUM,
    Gradients,
    all_gradients,
    cut_into_tiles,
    largest_scores,
)


def each_answer_gradients(
    query: Tensor,
    table: Tensor,
    target: Pairs,
    left_out: Pairs,
    smoothing: float,
    weight: Weight,
    into: Gradients,
    in_bf16: bool = False,
) -> Tensor:
    """Compute the weighted sum of the losses of questions, and leave its gradients in ``into``.

    Arguments as for :func:`~getd.training.losses.fused_softmax.softmax_gradients`; nothing but the
    answers is left out.
    """
    rows, columns = target
    n_answers = torch.bincount(rows, minlength=len(query))[:, None].to(query.dtype)  # (b, 1)
    weights = torch.ones_like(n_answers)
    weights *= weight
    shares = (weights / n_answers)[rows]  # (t, 1), of each answer
    answers = table[columns]
    own = (query[rows] * answers).sum(dim=1, keepdim=True)

    terms = _Terms(query, table, target, into, shares, own)
    sums = terms.leave_gradients(torch.bfloat16 if in_bf16 else query.dtype, is_shifted=False)
    sizes = torch.cat([sums, own.exp()]).log()
    if not torch.linalg.vector_norm(sizes, torch.inf).item() < MAX_LOG_SUM:
        sums = terms.leave_gradients(query.dtype, is_shifted=True)
    totals = terms.totals(sums)
    into.query.mul_(terms.factors(sums))
    loss = (shares * (totals.log() + terms.own_shift() - (1 - smoothing) * own)).sum()

    # The gradients of the answers' scores.
    n_candidates = len(table) - n_answers + 1
    grads = shares * (terms.own_exponentials() / totals - (1 - smoothing))
    if smoothing:
        share = weights * smoothing / n_candidates  # (b, 1)
        others = table.sum(dim=0).repeat(len(query), 1)
        others.index_add_(0, rows, answers, alpha=-1)  # the sum of all that are no answers
        spread = share * query
        into.query.sub_(share * others)
        into.table.sub_(spread.sum(dim=0))
        into.table.index_add_(0, columns, spread[rows])

        own_share = smoothing / n_candidates[rows]
        grads = grads - shares * own_share
        loss = loss - (spread * others).sum() - (shares * own_share * own).sum()
    into.query.index_add_(0, rows, grads * answers)
    into.table.index_add_(0, columns, grads * query[rows])
    return loss


class _Terms:
    """The sums of questions over all that are no answers, and what the answers add to them."""

    def __init__(
        self,
        query: Tensor,
        table: Tensor,
        target: Pairs,
        into: Gradients,
        shares: Tensor,
        own: Tensor,
    ) -> None:
        self.query = query
        self.table = table
        self.target = target
        self.into = into
        self.shares = shares  # (t, 1)
        self.own = own  # (t, 1), the scores of the answers
        self.shift = torch.zeros_like(query[:, :1])  # (b, 1), taken off all scores

    def leave_gradients(self, dtype: torch.dtype, is_shifted: bool) -> Tensor:
        """Leave the gradients of all but the answers; return the sums over them, ``(b, 1)``.

        That of the queries is yet to be multiplied by the factors.
        """
        operands = (self.query, self.query, self.table, self.target, self.into)
        blocks, buffer = cut_into_tiles(*operands, dtype)
        if is_shifted:
            largest = torch.cat([largest_scores(block, buffer) for block in blocks])
            self.shift = largest.scatter_reduce(0, self.target[0][:, None], self.own, "amax")

        start = 0
        for number, block in enumerate(blocks):
            span = slice(start, start + len(block.query))
            shift = self.shift[span] if is_shifted else None
            start = span.stop

            def divide(weighted: Tensor, sums: Tensor, span: slice = span) -> Tensor:
                whole = torch.zeros_like(self.shift)
                whole[span] = sums
                return weighted * self.factors(whole)[span]

            blocks[number] = block._replace(shift=shift, divide=divide)
        return all_gradients(blocks, buffer, 1.0)

    def own_shift(self) -> Tensor:
        """What is taken off the scores of the answers, ``(t, 1)``."""
        return self.shift[self.target[0]]

    def own_exponentials(self) -> Tensor:
        """The exponentials of the scores of the answers, ``(t, 1)``."""
        return (self.own - self.own_shift()).exp()

    def totals(self, sums: Tensor) -> Tensor:
        """What each answer is compared with: itself and all that are no answers, ``(t, 1)``."""
        return self.own_exponentials() + sums[self.target[0]]

    def factors(self, sums: Tensor) -> Tensor:
        """What the exponentials of a question are multiplied with in its gradients, ``(b, 1)``."""
        zeros = torch.zeros_like(self.shift)
        return zeros.index_add_(0, self.target[0], self.shares / self.totals(sums))

r"""How far rounding alone can put scores apart that should be equal.

A dot product of ``d`` terms, added in whatever order and with whatever instructions, is off by no more than

.. math:: \gamma_d \sum_i |q_i c_i|, \qquad \gamma_d = \frac{d u}{1 - d u}, \qquad u = 2^{-24} \text{ in float32}

(Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1). A matrix product may compute its last columns
with other instructions than the rest, so equal candidates can differ by twice that.
"""

from __future__ import annotations

import torch
from torch import Tensor

TERMS = 8  # more than there are: the sum of absolute values is itself rounded
OF_LARGEST = 256  # units of rounding, where nothing is known of how a score is made


def product_rounding(query: Tensor, vectors: Tensor) -> Tensor:
    """How far apart the scores of two equal candidates can be, where scores are dot products: ``(b, 1)``.

    ``query`` and ``vectors``, those of the answers, are ``(b, d)``.

    >>> product_rounding(torch.ones(1, 4), torch.ones(1, 4)).item() < 1e-5
    True
    """
    unit, tiny = torch.finfo(query.dtype).eps / 2, torch.finfo(query.dtype).tiny
    terms = query.shape[1] + TERMS
    gamma = terms * unit / (1 - terms * unit)

    magnitude = (query * vectors).abs().sum(dim=1, keepdim=True)
    return 2 * (gamma * magnitude + terms * tiny)


def score_rounding(scores: Tensor) -> Tensor:
    """The same for scores ``(b, m)`` of which nothing else is known, from the largest of each row: ``(b, 1)``."""
    if not scores.is_floating_point():
        return torch.zeros_like(scores[:, :1])
    return OF_LARGEST * torch.finfo(scores.dtype).eps / 2 * scores.abs().amax(dim=1, keepdim=True)

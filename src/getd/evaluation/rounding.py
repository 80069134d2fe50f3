r"""How far rounding alone can put scores apart that should be equal.

A dot product of ``d`` terms, in any order and with any instructions, is off by no more than

.. math::
    \gamma_d \sum_i |q_i c_i|, \qquad \gamma_d = \frac{d u}{1 - d u}, \qquad
    u = 2^{-24} \text{ in float32}

(Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1). A matrix product may
compute its last columns with other instructions than the rest, so equal candidates can differ by
twice that.
"""

import torch
from torch import Tensor

EXTRA_TERMS = 8  # the sum of absolute values is itself rounded
SCORE_UNITS = 256  # units of rounding, for scores of unknown origin


def product_rounding(query: Tensor, vectors: Tensor) -> Tensor:
    """Return how far apart the dot products of two equal candidates can be: ``(b, 1)``.

    ``query`` and ``vectors``, those of the answers, are ``(b, d)``.

    >>> product_rounding(torch.ones(1, 4), torch.ones(1, 4)).item() < 1e-5
    True
    """
    precision = torch.finfo(query.dtype)
    unit = precision.eps / 2
    terms = query.shape[1] + EXTRA_TERMS
    gamma = terms * unit / (1 - terms * unit)
    magnitude = (query * vectors).abs().sum(dim=1, keepdim=True)
    return 2 * (gamma * magnitude + terms * precision.tiny)


def bf16_rounding(query: Tensor, vectors: Tensor) -> Tensor:
    """Return how far apart these can be once they are rounded to bf16: one unit of its last place.

    >>> bf16_rounding(torch.ones(1, 4), torch.ones(1, 4)).item()
    0.03125
    """
    score = (query * vectors).sum(dim=1, keepdim=True)
    return torch.finfo(torch.bfloat16).eps * score.abs()


def score_rounding(scores: Tensor) -> Tensor:
    """Return the same for scores ``(b, m)`` of unknown origin, by the largest of each row."""
    if not scores.is_floating_point():
        return torch.zeros_like(scores[:, :1])
    unit = torch.finfo(scores.dtype).eps / 2
    return SCORE_UNITS * unit * scores.abs().amax(dim=1, keepdim=True)

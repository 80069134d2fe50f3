"""Full expressiveness as code: the constructions behind Theorem 1 of Liu, Yao and Li (WWW 2020).

A ground truth is a tensor of shape ``(n_r, n_e, ..., n_e)`` with 1 for each true fact and 0
elsewhere. Each function gives weights whose scores are that tensor, number for number.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from getd.algebra.aliases import Tensors
from getd.algebra.reshape import check_reshape
from getd.errors import ShapeError


def exact_tucker(truth: Tensor) -> tuple[Tensor, Tensors]:
    r"""Lemma 1: one-hot vectors, and the ground truth itself as the core.

    .. math::
        W = T, \qquad r_i = \mathbf 1_i \in \{0, 1\}^{n_r}, \qquad
        e_i = \mathbf 1_i \in \{0, 1\}^{n_e}

    Returns the core, of the shape of ``truth``, and for each mode of size ``n`` a table ``(n, n)``;
    those of the entity positions are equal, so one table serves them all.

    >>> core, (relations, entities) = exact_tucker(torch.tensor([[True, False]]))
    >>> core, relations, entities
    (tensor([[1., 0.]]), tensor([[1.]]), tensor([[1., 0.],
            [0., 1.]]))
    """
    core = _as_numbers(truth)
    tables = [torch.eye(size, dtype=core.dtype, device=core.device) for size in core.shape]
    return core, tables


def exact_cp(truth: Tensor) -> Tensors:
    r"""Lemma 2: one rank-one term for each true fact.

    .. math::
        T = \sum_{f \text{ true}}
        \mathbf 1_{f_0} \circ \mathbf 1_{f_1} \circ \cdots \circ \mathbf 1_{f_{k-1}}

    Returns a factor ``(n, F)`` for each mode of size ``n``. ``F`` is the number of true facts (1 if
    there are none). The lemma keeps a zero term for each false fact, so its ``F`` is the product of
    all sizes. Any tensor will do, not only zeros and ones: the first factor carries the values.

    >>> exact_cp(torch.tensor([[1, 0], [0, 1]]))
    [tensor([[1., 0.],
            [0., 1.]]), tensor([[1., 0.],
            [0., 1.]])]
    """
    values = _as_numbers(truth)
    facts = values.nonzero()  # (F, k)
    if not len(facts):
        facts = facts.new_zeros(1, values.dim())

    factors = []
    terms = torch.arange(len(facts), device=facts.device)
    for mode, size in enumerate(values.shape):
        factor = values.new_zeros(size, len(facts))
        factor[facts[:, mode], terms] = 1
        factors.append(factor)
    factors[0] = factors[0] * values[facts.unbind(1)]
    return factors


def cp_to_ring(factors: Sequence[Tensor]) -> Tensors:
    r"""Lemma 3: a sum of rank-one terms is a ring whose slices are diagonal.

    .. math::
        Z_j[:, i, :] = \operatorname{diag}(U_j[i, :])

    Turns ``k`` factors ``(n_j, F)`` into ``k`` cores ``(F, n_j, F)``; factors that differ in ``F``
    are a :class:`~getd.errors.ShapeError`.

    >>> [core.shape for core in cp_to_ring([torch.ones(2, 3), torch.ones(4, 3)])]
    [torch.Size([3, 2, 3]), torch.Size([3, 4, 3])]
    """
    ranks = [factor.shape[1] for factor in factors]
    if len(set(ranks)) != 1:
        raise ShapeError(f"the factors of a sum need one number of terms, found {ranks}")
    return [factor.diag_embed().transpose(0, 1) for factor in factors]


def exact_getd(
    truth: Tensor, ring_shape: Sequence[int] | None = None
) -> tuple[Tensor, Tensor, Tensors]:
    r"""Theorem 1: a GETD whose scores are the ground truth.

    .. math::
        T[i_r, i_1, \dots, i_n] = W \times_0 r_{i_r} \times_1 e_{i_1} \cdots \times_n e_{i_n},
        \qquad W = \operatorname{TR}(Z_1, \dots, Z_k) \text{ reshaped}

    Takes a ground truth ``(n_r, n_e, ..., n_e)`` of any arity, and the sizes of the ring's cores,
    with the same product as its shape; by default that shape. Returns the relation table
    ``(n_r, n_r)``, the entity table ``(n_e, n_e)`` that all positions share, and ``k`` cores
    ``(F, n_i, F)``, where ``F`` is the number of true facts (1 if there are none).

    >>> relations, entities, cores = exact_getd(torch.ones(1, 2, 2), ring_shape=(2, 2))
    >>> relations.shape, entities.shape, [core.shape for core in cores]
    (torch.Size([1, 1]), torch.Size([2, 2]), [torch.Size([4, 2, 4]), torch.Size([4, 2, 4])])
    """
    if truth.dim() < 2 or len(set(truth.shape[1:])) != 1:
        raise ShapeError(
            f"a ground truth has shape (n_r, n_e, ..., n_e), found {tuple(truth.shape)}"
        )
    ring_shape = tuple(truth.shape if ring_shape is None else ring_shape)
    check_reshape(ring_shape, truth.shape)

    core, (relations, entities, *_) = exact_tucker(truth)
    factors = exact_cp(core.reshape(ring_shape))
    return relations, entities, cp_to_ring(factors)


def _as_numbers(truth: Tensor) -> Tensor:
    return truth if truth.is_floating_point() else truth.to(torch.get_default_dtype())

"""What happens to a vector on its way through a model: it is looked up, normalised, dropped out."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import Embedding, Module, ModuleDict, ModuleList

from getd.choices import NormKind
from getd.models.aliases import Positions, RandomSource
from getd.models.norms import make_norm
from getd.models.settings import TensorModelSettings


def embedding(
    n: int, dim: int, scale: float, generator: RandomSource, sparse: bool = False
) -> Embedding:
    """Make a table of random vectors with a standard deviation of ``scale``.

    ``sparse`` asks for sparse gradients, which pay where few of many rows are looked up.
    """
    weight = scale * torch.randn(n, dim, generator=generator)
    return Embedding(n, dim, sparse=sparse, _weight=weight)


def drop_out(values: Tensor, share: float, training: bool) -> Tensor:
    """Set that share of numbers to 0 in training, and scale the others up to keep their mean."""
    if not training or not share:
        return values
    kept = torch.rand_like(values) >= share  # nn.Dropout, bit by bit, takes three times as long
    return values * (kept / (1 - share))


class VectorLayer(Module):
    """Turns vectors into others of the same shape."""

    __call__: Callable[..., Tensor]


class NormDropout(VectorLayer):
    """A norm, then dropout; acts on the last axis, ``(…, d)``."""

    def __init__(self, dim: int, norm: NormKind, dropout: float) -> None:
        super().__init__()
        self.norm = make_norm(norm, dim)
        self.dropout = dropout

    def forward(self, vectors: Tensor, positions: Positions | None = None) -> Tensor:
        """Normalise vectors; all positions are treated the same way."""
        rows = vectors.flatten(0, -2)
        if rows.dtype == torch.bfloat16:  # of a product under autocast
            rows = rows.float()
        if self.norm is not None:
            rows = self.norm(rows)
        return drop_out(rows, self.dropout, self.training).view_as(vectors)


class PositionNormDropout(VectorLayer):
    """The same with a norm for each of ``n`` positions; acts on ``(b, positions, d)``."""

    def __init__(self, n: int, dim: int, norm: NormKind, dropout: float) -> None:
        super().__init__()
        self.each = ModuleList(NormDropout(dim, norm, dropout) for _ in range(n))

    def forward(self, vectors: Tensor, positions: Positions | None = None) -> Tensor:
        norms = self.each if positions is None else [self.each[p] for p in positions]
        columns = zip(norms, vectors.unbind(1), strict=True)
        normalised = [norm(column) for norm, column in columns]
        return torch.stack(normalised, dim=1) if normalised else vectors


class Norms(Module):
    """The norms of relations, given entities, queries and relation queries of facts of one arity.

    With ``norms_by_position`` each position has its own (but not with reciprocal relations, where
    the open position is always the first).
    """

    def __init__(
        self,
        arity: int,
        entity_dim: int,
        relation_dim: int,
        settings: TensorModelSettings,
        has_relation_query: bool,
    ) -> None:
        super().__init__()
        norm = settings.norm
        by_position = settings.norms_by_position and not settings.reciprocal

        def of_entities(dropout: float) -> VectorLayer:
            if by_position:
                return PositionNormDropout(arity, entity_dim, norm, dropout)
            return NormDropout(entity_dim, norm, dropout)

        self.relation = NormDropout(relation_dim, norm, settings.relation_dropout)
        self.entity = of_entities(settings.entity_dropout)
        self.query = of_entities(settings.query_dropout)
        if has_relation_query:
            self.relation_query = NormDropout(relation_dim, norm, settings.query_dropout)


class NormsByArity(ModuleDict):
    """:class:`Norms` for each arity, by its number as text.

    Facts of each arity hold other entities, and their ring or core gives queries of another scale.
    """

    def __init__(
        self,
        arities: Sequence[int],
        entity_dim: int,
        relation_dim: int,
        settings: TensorModelSettings,
        has_relation_query: bool = True,
    ) -> None:
        super().__init__()
        for n in arities:
            self[str(n)] = Norms(n, entity_dim, relation_dim, settings, has_relation_query)

    def of(self, arity: int) -> Norms:
        norms = self[str(arity)]
        assert isinstance(norms, Norms)
        return norms

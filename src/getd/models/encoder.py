r"""A network that reads the given entities as a set, each with its role, and makes the query.

.. math::
    x_j = e_j + \rho_{rj}, \qquad
    q_p = g\bigl(\rho_{rp} + r, \; \{x_j : j \ne p\}\bigr), \qquad
    \phi = \langle q_p, e_p \rangle

:math:`\rho_{rj}` is the vector of the role at position :math:`j` of relation :math:`r`. Where
several relations have one name and differ in their roles, :math:`r` is a vector of the name plus
one of the relation. There are two kinds of :math:`g`. DeepSets adds up what a small network makes
of each entity,

.. math::
    g(y, X) = \operatorname{out}\Bigl(
        \sqrt{|X|} \bigl(\operatorname{norm}(y) + \frac{1}{|X|} \sum_{x \in X} f(x)\bigr)\Bigr),

and attention lets :math:`y` and all of :math:`X` look at each other in the layers of a transformer.
Neither has a part that depends on the arity, so facts of all arities teach the same network.

A sum cannot express what several entities mean only together. With ``ring_query_ranks`` the query
of a tensor ring is added, which multiplies the entities (:mod:`~getd.models.ring_query`). The model
is then GETD and a network in one, over the same entities.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import Embedding

from getd.errors import ShapeError
from getd.models.aliases import RandomSource, Tables
from getd.models.base import DotProductModel, ModelSizes, RoleTable, other_positions
from getd.models.layers import drop_out, embedding
from getd.models.ring_query import RingQuery, RingShape
from getd.models.roles import number_positions
from getd.models.settings import Dropout, ModelSettings

READER_SCALE = 0.3  # of the normalised reader, at first


class EncoderSettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "encoder"``."""

    entity_dim: PositiveInt = 128
    kind: Literal["deepsets", "attention"] = "deepsets"
    layers: PositiveInt = 2  # after the sum, or of attention
    heads: PositiveInt = 4  # of attention
    dropout: Dropout = 0.2  # in every layer
    query_dropout: Dropout = 0.0
    ring_query_ranks: PositiveInt | None = None  # ranks of an added ring; None: no ring
    ring_query_dim: PositiveInt = 64  # to which vectors are narrowed for it
    ring_query_dropout: Dropout = 0.3  # on the query of the ring
    initial_scale: float = 0.02


class Encoder(DotProductModel):
    """A network over the set of given entities, each with its role; one for all arities."""

    role_numbers: Tensor  # (|R|, n): the row of the role of each position
    name_numbers: Tensor  # (|R|,): the row of the name of each relation, where some share one
    parameters_formula = "|E|d + |R|d + n|R|d + 4d² for each layer + 2dk + (n+1)k R² for a ring"

    def __init__(
        self, sizes: ModelSizes, settings: EncoderSettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        scale = settings.initial_scale
        self.entity = embedding(sizes.n_entities, d, scale, generator, sparse=True)
        self.relation = embedding(sizes.n_relations, d, scale, generator)

        # Relations of one name, which differ in their roles, have a vector in common.
        self.name: Embedding | None = None
        if sizes.names is not None:
            self.name = embedding(max(sizes.names) + 1, d, scale, generator)
            name_numbers = torch.tensor(sizes.names, device="cpu")
            self.register_buffer("name_numbers", name_numbers, persistent=False)

        numbers = number_positions(sizes)
        self.register_buffer("role_numbers", numbers, persistent=False)
        self.role = embedding(int(numbers.max()) + 1, d, scale, generator)

        # Of each position, while the relation is open and roles are not known.
        self.slot = embedding(max(self.arities), d, scale, generator)

        self.query_dropout = settings.query_dropout
        self.ring: RingQuery | None = None
        if settings.ring_query_ranks:
            dropouts = (settings.dropout, settings.ring_query_dropout)
            shape = RingShape(max(self.arities), settings.ring_query_dim, settings.ring_query_ranks)
            with seeded(generator):
                self.ring = RingQuery(d, shape, *dropouts, generator)

        with seeded(generator):
            make = DeepSets if settings.kind == "deepsets" else Attention
            self.network = make(settings)
            self.output = nn.Sequential(
                nn.LayerNorm(d),
                nn.Linear(d, d),
                nn.GELU(),
                nn.LayerNorm(d),
            )

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        self.check_arity(entities)
        given = other_positions(entities, position)
        roles = self.role(self.role_numbers[relation])  # (b, n, d)
        vectors = self.entity(entities[:, given])  # (b, n - 1, d)
        r = self._relation(relation)
        query: Tensor = self._output(
            self.network(vectors + roles[:, given], roles[:, position] + r)
        )
        if self.ring is None:
            return query
        product: Tensor = self.ring(r, vectors, position)
        return query + product.to(query)

    def queries(self, relation: Tensor, entities: Tensor) -> Tensor:
        n = self.check_arity(entities)
        roles = self.role(self.role_numbers[relation][:, :n])  # (b, n, d)
        vectors = self.entity(entities)  # (b, n, d)
        r = self._relation(relation)
        query: Tensor = self._output(self.network.each(vectors + roles, roles + r.unsqueeze(1)))
        if self.ring is None:
            return query
        return query + self.ring.each(r, vectors).to(query)

    def relation_query(self, entities: Tensor) -> Tensor:
        n = self.check_arity(entities)
        tokens = self.entity(entities) + self.slot.weight[:n]
        return self._output(self.network(tokens, torch.zeros_like(tokens[:, 0])))

    def relation_candidates(self) -> Tensor:
        vectors: Tensor = self.relation.weight
        return vectors if self.name is None else vectors + self.name(self.name_numbers)

    def relation_tables(self) -> Tables:
        if self.name is None:
            return super().relation_tables()
        n, d = self.relation.weight.shape
        return {"relation": Embedding(n, d, _weight=self.relation_candidates().detach())}

    def role_tables(self) -> dict[str, RoleTable]:
        return {"role": RoleTable(self.role, self.role_numbers)}

    def _relation(self, relation: Tensor) -> Tensor:
        vectors: Tensor = self.relation(relation)
        if self.name is None:
            return vectors
        shared: Tensor = self.name(self.name_numbers[relation])
        return vectors + shared

    def _output(self, encoded: Tensor) -> Tensor:
        query: Tensor = self.output(encoded).to(self.entity.weight.dtype)
        return drop_out(query, self.query_dropout, self.training)


class DeepSets(nn.Module):
    """Passes each token through a network, adds up the results, and reads the sum.

    What all tokens have in common grows with their number. The reader alone says which position is
    open, so it grows alike: otherwise all positions of long facts would look the same.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__()
        d = settings.entity_dim
        dropout = settings.dropout
        self.first = nn.Sequential(nn.LayerNorm(d), DropOut(dropout), *_perceptron(d))
        self.reader_norm = nn.LayerNorm(d)
        nn.init.constant_(self.reader_norm.weight, READER_SCALE)
        self.layers = nn.ModuleList()
        for _ in range(settings.layers):
            widen, bend, narrow = _perceptron(d)
            self.layers.append(
                nn.Sequential(
                    nn.LayerNorm(d),
                    widen,
                    bend,
                    DropOut(dropout),
                    narrow,
                    DropOut(dropout),
                )
            )

    def forward(self, tokens: Tensor, reader: Tensor) -> Tensor:
        """Read tokens ``(b, k, d)`` with a reader ``(b, d)`` of their own."""
        total = self.first(tokens).sum(dim=1)
        return self._read(total, reader, tokens.shape[1])

    def each(self, tokens: Tensor, readers: Tensor) -> Tensor:
        """Read with each reader ``(b, n, d)`` all tokens ``(b, n, d)`` but the one at its place."""
        n = tokens.shape[1]
        encoded = self.first(tokens)
        others = (1 - torch.eye(n, dtype=encoded.dtype, device=encoded.device)) @ encoded
        return self._read(others, readers, n - 1)

    def _read(self, total: Tensor, reader: Tensor, n_tokens: int) -> Tensor:
        root = max(n_tokens, 1) ** 0.5
        vectors: Tensor = total / root + root * self.reader_norm(reader)
        for layer in self.layers:
            vectors = vectors + layer(vectors)
        return vectors


class Attention(nn.Module):
    """Layers of a transformer, in which the reader and the tokens look at each other."""

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__()
        d = settings.entity_dim
        heads = settings.heads
        if d % heads:
            raise ShapeError(f"entity_dim = {d} cannot be divided among {heads} heads")
        self.norm = nn.Sequential(nn.LayerNorm(d), DropOut(settings.dropout))
        self.layers = nn.ModuleList()
        for _ in range(settings.layers):
            self.layers.append(
                nn.TransformerEncoderLayer(
                    d, heads, 2 * d, settings.dropout, "gelu", batch_first=True, norm_first=True
                )
            )

    def forward(self, tokens: Tensor, reader: Tensor) -> Tensor:
        """Read tokens ``(b, k, d)`` with a reader ``(b, d)`` of their own."""
        vectors = self.norm(torch.cat([reader.unsqueeze(1), tokens], dim=1))
        for layer in self.layers:
            vectors = layer(vectors)
        first: Tensor = vectors[:, 0]
        return first

    def each(self, tokens: Tensor, readers: Tensor) -> Tensor:
        """Read with each reader ``(b, n, d)`` all tokens ``(b, n, d)`` but the one at its place."""
        n = tokens.shape[1]
        read = []
        for position in range(n):
            given = other_positions(tokens, position)
            read.append(self(tokens[:, given], readers[:, position]))
        return torch.stack(read, dim=1)


class DropOut(nn.Module):
    """Dropout as a layer."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        return drop_out(values, self.share, self.training)


def _perceptron(d: int) -> list[nn.Module]:
    return [nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)]


@contextmanager
def seeded(generator: RandomSource) -> Iterator[None]:
    """Let torch's own layers start with weights that a generator decides."""
    with torch.random.fork_rng(devices=[], enabled=generator is not None):
        if generator is not None:
            torch.manual_seed(int(torch.randint(2**31, (), generator=generator, device="cpu")))
        yield

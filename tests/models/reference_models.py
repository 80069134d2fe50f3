"""The scores of the models as nested loops over numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from getd.models.base import DotProductModel, ScoringModel
from getd.models.getd import GETD
from getd.models.n_cp import NCP
from getd.models.n_tucker import NTuckER
from getd.models.reciprocal import Reciprocal
from getd.models.tucker import TuckER
from getd.models.tucker_model import TuckerModel


def core_entry(model: DotProductModel, arity: int, index: tuple[int, ...]) -> float:
    """One entry of the core tensor of a Tucker model."""
    if isinstance(model, NTuckER):
        return float(model.cores[str(arity)].detach()[index])
    assert isinstance(model, GETD)
    cores = [core.detach() for core in model.rings[str(arity)]]
    dims, sizes = model.dims[arity], [core.shape[1] for core in cores]
    flat = 0
    for size, i in zip(dims, index, strict=True):
        flat = flat * size + i
    places = []
    for size in reversed(sizes):
        flat, i = divmod(flat, size)
        places.append(i)
    chain = torch.eye(cores[0].shape[0], dtype=cores[0].dtype)
    for core, i in zip(cores, reversed(places), strict=True):
        chain = chain @ core[:, i]
    return float(chain.trace())


def score(model: ScoringModel, relation: int, entities: list[int], position: int | None) -> float:
    """The score of a fact without batch norm, asked with this position open (None: the relation)."""
    if isinstance(model, Reciprocal):
        if position is None:
            return score(model.inner, relation, entities, None)
        turned = entities[position:] + entities[:position]
        return score(model.inner, relation + position * model.n_relations, turned, 0)
    return SCORES[type(model)](model, relation, entities)


def n_cp(model: NCP, relation: int, entities: list[int]) -> float:
    r = model.relation.weight.detach()[relation]
    vectors = [table.weight.detach()[e] for table, e in zip(model.entity, entities, strict=False)]
    return sum(float(r[i]) * _product([float(v[i]) for v in vectors]) for i in range(len(r)))


def tucker(model: TuckerModel, relation: int, entities: list[int]) -> float:
    """The bare multilinear form, index by index."""
    vectors = [model.relation.weight.detach()[relation], *(model.entity.weight.detach()[e] for e in entities)]
    total = 0.0
    for index in product(*(range(len(v)) for v in vectors)):
        total += core_entry(model, len(entities), index) * _product(
            [float(v[i]) for v, i in zip(vectors, index, strict=True)]
        )
    return total


def _product(values: list[float]) -> float:
    result = 1.0
    for value in values:
        result *= value
    return result


def distmult(relation: Tensor, entity: Tensor, r: int, entities: list[int]) -> float:
    """DistMult for any arity: one entity table."""
    return sum(
        float(relation[r, i]) * _product([float(entity[e, i]) for e in entities]) for i in range(relation.shape[1])
    )


SCORES: dict[type[ScoringModel], Callable[..., float]] = {
    GETD: tucker,
    NCP: n_cp,
    NTuckER: tucker,
    TuckER: tucker,
}

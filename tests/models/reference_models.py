"""The scores of the models as nested loops over numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import exp, log

import torch
from torch import Tensor

from getd.models.base import DotProductModel, ScoringModel
from getd.models.complex import ComplEx
from getd.models.conve import ConvE
from getd.models.distmult import DistMult
from getd.models.encoder import Encoder
from getd.models.getd import GETD
from getd.models.hype import HypE
from getd.models.multilinear import MultilinearModel
from getd.models.n_cp import NCP
from getd.models.n_tucker import NTuckER
from getd.models.nalp import NaLP
from getd.models.rae import RAE, MTransH
from getd.models.ram import RAM
from getd.models.reciprocal import Reciprocal
from getd.models.simple import SimplE
from getd.models.transe import TransE
from getd.models.tucker import TuckER
from tests.models.reference_encoder import encoder


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
    digits = []
    for size in reversed(sizes):
        flat, i = divmod(flat, size)
        digits.append(i)
    chain = torch.eye(cores[0].shape[0], dtype=cores[0].dtype)
    for core, i in zip(cores, reversed(digits), strict=True):
        chain = chain @ core[:, i]
    return float(chain.trace())


def score(model: ScoringModel, relation: int, entities: list[int], position: int | None) -> float:
    """The score of a fact without batch norm, with this position open (None: the relation)."""
    if isinstance(model, Reciprocal):
        if position is None:
            return score(model.inner, relation, entities, None)
        turned = entities[position:] + entities[:position]
        return score(model.inner, relation + position * model.n_relations, turned, 0)
    if isinstance(model, RAE) and position is not None:
        return m_transh(model, relation, entities) + relatedness(model, entities, position)
    if isinstance(model, Encoder):
        return encoder(model, relation, entities, position)
    return SCORES[type(model)](model, relation, entities)


def n_cp(model: NCP, relation: int, entities: list[int]) -> float:
    r = model.relation.weight.detach()[relation]
    vectors = [table.weight.detach()[e] for table, e in zip(model.entity, entities, strict=False)]
    return sum(float(r[i]) * _product([float(v[i]) for v in vectors]) for i in range(len(r)))


def tucker(model: MultilinearModel, relation: int, entities: list[int]) -> float:
    """The bare multilinear form, index by index."""
    vectors = [
        model.relation.weight.detach()[relation],
        *(model.entity.weight.detach()[e] for e in entities),
    ]
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
        float(relation[r, i]) * _product([float(entity[e, i]) for e in entities])
        for i in range(relation.shape[1])
    )


def distmult_score(model: DistMult, relation: int, entities: list[int]) -> float:
    return distmult(
        model.relation.weight.detach(), model.entity.weight.detach(), relation, entities
    )


def simple(model: SimplE, relation: int, entities: list[int]) -> float:
    """HSimplE, index by index: position j of n reads from ``j d / n`` on, round the end."""
    r, e, n = model.relation.weight.detach()[relation], model.entity.weight.detach(), len(entities)
    d, total = len(r), 0.0
    for i in range(d):
        total += float(r[i]) * _product(
            [float(e[entities[j], (i + j * d // n) % d]) for j in range(n)]
        )
    return total


def hype(model: HypE, relation: int, entities: list[int], stride: int = 2) -> float:
    """Convolve, project, multiply, sum, number by number."""
    r, table = model.relation.weight[relation].tolist(), model.entity.weight.tolist()
    filters, projection = model.filters.tolist(), model.projection.tolist()
    d, seen = len(r), []
    for position, entity in enumerate(entities):
        vector = [0.0] * d
        for f, weights in enumerate(filters[position]):
            for window, start in enumerate(range(0, d - len(weights) + 1, stride)):
                feature = sum(weight * table[entity][start + i] for i, weight in enumerate(weights))
                vector = [v + feature * projection[f][window][o] for o, v in enumerate(vector)]
        seen.append(vector)
    return sum(r[i] * _product([vector[i] for vector in seen]) for i in range(d))


def ram(model: RAM, relation: int, entities: list[int]) -> float:
    """Role by role, number by number."""
    n, m, basis = len(entities), model.multiplicity, model.basis.tolist()
    d, table, logits = (
        len(basis[0]),
        model.entity.weight.tolist(),
        model.relation.weight[relation].tolist(),
    )
    patterns = [_softmax(row) for row in model.patterns[str(n)].tolist()]
    total = 0.0
    for role in range(n):
        mix = _softmax(logits[role * len(basis) : (role + 1) * len(basis)])
        for i in range(d):
            term = sum(weight * vector[i] for weight, vector in zip(mix, basis, strict=True))
            for j, entity in enumerate(entities):
                looks = [
                    n
                    * sum(w * pattern[j * m + c] for w, pattern in zip(mix, patterns, strict=True))
                    for c in range(m)
                ]
                term *= sum(looks[c] * table[entity][c * d + i] for c in range(m))
            total += term
    return total


def _softmax(values: list[float]) -> list[float]:
    powers = [exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def complex_score(model: ComplEx, relation: int, entities: list[int]) -> float:
    """By Python's complex numbers."""
    rows = model.relation.weight.detach()[relation], *model.entity.weight.detach()[entities]
    d = len(rows[0]) // 2
    r, h, t = ([complex(float(row[i]), float(row[d + i])) for i in range(d)] for row in rows)
    return sum((r[i] * h[i] * t[i].conjugate()).real for i in range(d))


def transe(model: TransE, relation: int, entities: list[int]) -> float:
    r, (h, t) = model.relation.weight.detach()[relation], (entity(model, e) for e in entities)
    return -norm([h[i] + float(r[i]) - t[i] for i in range(len(h))], model.p)


def entity(model: TransE, e: int) -> list[float]:
    vector = model.entity.weight.detach()[e].tolist()
    length = norm(vector, 2) if model.unit_entities else 1.0
    return [x / length for x in vector]


def m_transh(model: MTransH, relation: int, entities: list[int]) -> float:
    w, total = (
        model.normal.weight.detach()[relation].tolist(),
        model.relation.weight.detach()[relation].tolist(),
    )
    w = [x / norm(w, 2) for x in w]
    for j, e in enumerate(entities):
        a, vector = (
            float(model.share.weight.detach()[relation, j]),
            model.entity.weight.detach()[e].tolist(),
        )
        along = sum(x * y for x, y in zip(vector, w, strict=True))
        total = [total[i] + a * (vector[i] - along * w[i]) for i in range(len(w))]
    return -(norm(total, model.p) ** (2 if model.squared else 1))


def relatedness(model: RAE, entities: list[int], position: int) -> float:
    """How likely what stands at a position and each other entity take part in one fact."""
    weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
    e, total = weights["entity.weight"], 0.0
    for j in range(len(entities)):
        if j != position:
            logit = float(weights["output_bias"])
            for h in range(len(weights["output"])):
                value = float(weights["hidden_bias"][h])
                for i in range(e.shape[1]):
                    value += float(weights["first"][h, i]) * float(e[entities[j], i])
                    value += float(weights["second"][h, i]) * float(e[entities[position], i])
                logit += float(weights["output"][h]) * max(value, 0.0)
            total += log(1 / (1 + exp(-logit)))
    return model.relatedness_weight * total / (len(entities) - 1)


def nalp(model: NaLP, relation: int, entities: list[int]) -> float:
    """Every ordered pair of positions makes its units, and the smallest of each counts."""
    weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
    units, features = len(weights["output"]), []
    for j, e in enumerate(entities):
        role, value = (
            weights["role.weight"][relation * max(model.arities) + j],
            weights["entity.weight"][e],
        )
        filters = torch.cat(
            [weights["role_filters"], weights["entity_filters"]], dim=1
        )  # on a role and its entity
        features.append(
            (filters @ torch.cat([role, value]) + weights["filter_bias"]).clamp(min=0).tolist()
        )
    total = float(weights["output_bias"])
    for unit in range(units):
        one, other = weights["pair"][unit].tolist(), weights["pair"][units + unit].tolist()
        related = []
        for a, b in product(features, repeat=2):
            value = float(weights["pair_bias"][unit])
            value += sum(x * y for x, y in zip(one, a, strict=True)) + sum(
                x * y for x, y in zip(other, b, strict=True)
            )
            related.append(max(value, 0.0))
        total += float(weights["output"][unit]) * min(related)
    return total


def norm(vector: list[float], p: int) -> float:
    return sum(abs(x) ** p for x in vector) ** (1 / p)


def conve(model: ConvE, relation: int, entities: list[int]) -> float:
    """The network of the paper, number by number, for the first entity as the answer."""
    answer, given = model.entity.weight.detach()[entities].tolist()
    flat = given[:-1] + model.relation.weight.detach()[relation].tolist()
    (height, width), k = model.image, model.kernel
    filters, offset, projection = (
        model.filters.tolist(),
        model.offset.tolist(),
        model.projection.tolist(),
    )
    image = [flat[row * width : (row + 1) * width] for row in range(height)]
    features = []
    for row, column, channel in product(
        range(height - k + 1), range(width - k + 1), range(len(offset))
    ):
        total = offset[channel]
        for i, j in product(range(k), range(k)):
            total += filters[k * i + j][channel] * image[row + i][column + j]
        features.append(max(total, 0.0))
    score = answer[-1]
    for i, shift in enumerate(model.shift.tolist()):
        total = shift + sum(
            feature * weights[i] for feature, weights in zip(features, projection, strict=True)
        )
        score += max(total, 0.0) * answer[i]
    return score


SCORES: dict[type[ScoringModel], Callable[..., float]] = {
    GETD: tucker,
    NCP: n_cp,
    NTuckER: tucker,
    DistMult: distmult_score,
    SimplE: simple,
    HypE: hype,
    RAM: ram,
    TuckER: tucker,
    ComplEx: complex_score,
    ConvE: conve,
    TransE: transe,
    MTransH: m_transh,
    RAE: m_transh,
    NaLP: nalp,
}

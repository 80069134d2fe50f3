"""The encoder, vector by vector: slow and obvious."""

from __future__ import annotations

from math import erf, exp, sqrt

import numpy as np

from getd.models.encoder import Attention, Encoder

Vector = np.ndarray
Weights = dict[str, np.ndarray]


def encoder(model: Encoder, relation: int, entities: list[int], position: int | None) -> float:
    """The score of a fact with this position open (None: the relation)."""
    weights = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    roles = weights["role.weight"][relation * max(model.arities) :]
    if position is None:
        roles = weights["slot.weight"]
        reader = np.zeros(roles.shape[1])
        answer = weights["relation.weight"][relation]
    else:
        reader = roles[position] + weights["relation.weight"][relation]
        answer = weights["entity.weight"][entities[position]]

    tokens = []
    for j, entity in enumerate(entities):
        if j != position:
            tokens.append(weights["entity.weight"][entity] + roles[j])

    read = attention if isinstance(model.network, Attention) else deep_sets
    q = read(weights, tokens, reader, model)
    q = linear(weights, "output.1", layer_norm(weights, "output.0", q))
    q = layer_norm(weights, "output.3", gelu(q))
    if position is not None and model.ring is not None:
        q = q + ring_query(weights, relation, entities, position)
    return float(sum(a * b for a, b in zip(q, answer, strict=True)))


def ring_query(weights: Weights, relation: int, entities: list[int], position: int) -> Vector:
    """Entry by entry, the trace of the cores, each contracted with its vector."""
    narrow = weights["ring.narrow.weight"]
    r = narrow @ weights["relation.weight"][relation]
    vectors = [layer_norm(weights, "ring.relation_norm", r)]
    for entity in entities:
        e = narrow @ weights["entity.weight"][entity]
        vectors.append(layer_norm(weights, "ring.entity_norm", e))

    query = np.zeros(len(vectors[0]))
    for i in range(len(query)):
        product = np.eye(weights["ring.cores.0"].shape[0])
        for mode, vector in enumerate(vectors):
            core = weights[f"ring.cores.{mode}"]
            is_open = mode == position + 1
            matrix = core[:, i, :] if is_open else np.einsum("i,aib->ab", vector, core)
            product = product @ matrix
        query[i] = np.trace(product)
    return weights["ring.widen.weight"] @ layer_norm(weights, "ring.query_norm", query)


def deep_sets(weights: Weights, tokens: list[Vector], reader: Vector, model: Encoder) -> Vector:
    total = np.zeros_like(reader)
    for token in tokens:
        hidden = gelu(linear(weights, "network.first.2", norm_of(weights, "first.0", token)))
        total = total + linear(weights, "network.first.4", hidden)
    mean = total / len(tokens)
    vector = sqrt(len(tokens)) * (layer_norm(weights, "network.reader_norm", reader) + mean)
    for number in range(len(model.network.layers)):
        layer = f"network.layers.{number}"
        hidden = gelu(linear(weights, f"{layer}.1", layer_norm(weights, f"{layer}.0", vector)))
        vector = vector + linear(weights, f"{layer}.4", hidden)
    return vector


def attention(weights: Weights, tokens: list[Vector], reader: Vector, model: Encoder) -> Vector:
    vectors = [norm_of(weights, "norm.0", vector) for vector in [reader, *tokens]]
    d = len(reader)
    for number, layer in enumerate(model.network.layers):
        name = f"network.layers.{number}"
        size = d // layer.self_attn.num_heads
        normed = [layer_norm(weights, f"{name}.norm1", vector) for vector in vectors]
        matrix = weights[f"{name}.self_attn.in_proj_weight"]
        bias = weights[f"{name}.self_attn.in_proj_bias"]
        projected = [matrix @ vector + bias for vector in normed]
        for i, own in enumerate(projected):
            seen = np.zeros(d)
            for start in range(0, d, size):
                head = slice(start, start + size)
                logits = [
                    own[:d][head] @ other[d : 2 * d][head] / sqrt(size) for other in projected
                ]
                shares = [exp(logit) / sum(map(exp, logits)) for logit in logits]
                for share, other in zip(shares, projected, strict=True):
                    seen[head] += share * other[2 * d :][head]
            vectors[i] = vectors[i] + linear(weights, f"{name}.self_attn.out_proj", seen)
        for i, vector in enumerate(vectors):
            hidden = gelu(
                linear(weights, f"{name}.linear1", layer_norm(weights, f"{name}.norm2", vector))
            )
            vectors[i] = vector + linear(weights, f"{name}.linear2", hidden)
    return vectors[0]


def linear(weights: Weights, name: str, vector: Vector) -> Vector:
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def norm_of(weights: Weights, name: str, vector: Vector) -> Vector:
    return layer_norm(weights, f"network.{name}", vector)


def layer_norm(weights: Weights, name: str, vector: Vector) -> Vector:
    mean = sum(vector) / len(vector)
    variance = sum((x - mean) ** 2 for x in vector) / len(vector)
    scaled = (vector - mean) / sqrt(variance + 1e-5)
    return weights[f"{name}.weight"] * scaled + weights[f"{name}.bias"]


def gelu(vector: Vector) -> Vector:
    return np.array([x * (1 + erf(x / sqrt(2))) / 2 for x in vector])

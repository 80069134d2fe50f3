"""Sums of products: their published formulas, and what they can and cannot tell apart."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from getd.errors import ConfigError, ShapeError
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.complex import ComplEx
from getd.models.conve import ConvE, ConvESettings, FeatureMaps
from getd.models.hype import HypE
from getd.models.registry import MODELS, make_model, model_settings
from getd.models.simple import SimplE

N_ENTITIES, N_RELATIONS = 5, 3
EVERY_PAIR = torch.cartesian_prod(torch.arange(N_ENTITIES), torch.arange(N_ENTITIES))


def make(name: str, arity: int = 2, seed: int = 0, **settings: object) -> ScoringModel:
    generator = torch.Generator().manual_seed(seed)
    checked = model_settings(name, {"entity_dim": 6, "initial_scale": 1.0, **settings})
    return (
        make_model(name, checked, ModelSizes(N_ENTITIES, N_RELATIONS, (arity,)), generator)
        .double()
        .eval()
    )


def facts_scored(model: ScoringModel, relation: int, entities: torch.Tensor) -> torch.Tensor:
    """The scores of facts of one relation, ``(b,)``."""
    relations = torch.full((len(entities),), relation)
    return model.score_candidates(relations, entities, 0).gather(1, entities[:, :1]).squeeze(1)


@pytest.mark.parametrize("relation", range(N_RELATIONS))
def test_simple_of_two_entities_is_the_sum_of_two_cp_terms(relation: int) -> None:
    """Twice SimplE's ½ (⟨head of a, r, tail of b⟩ + ⟨head of b, inverse of r, tail of a⟩)."""
    model = make("simple")
    assert isinstance(model, SimplE)
    as_head, as_tail = model.entity.weight.detach().chunk(2, dim=1)
    direct, inverse = model.relation.weight.detach()[relation].chunk(2)
    first, second = EVERY_PAIR.unbind(1)
    simple = (
        as_head[first] * direct * as_tail[second] + as_head[second] * inverse * as_tail[first]
    ).sum(dim=1) / 2
    assert_close(facts_scored(model, relation, EVERY_PAIR), 2 * simple)


@pytest.mark.parametrize("relation", range(N_RELATIONS))
def test_complex_is_the_real_part_of_complex_arithmetic(relation: int) -> None:
    model = make("complex")
    assert isinstance(model, ComplEx)
    e = torch.complex(*model.entity.weight.detach().chunk(2, dim=1))
    r = torch.complex(*model.relation.weight.detach()[relation].chunk(2))
    first, second = EVERY_PAIR.unbind(1)
    expected = (r * e[first] * e[second].conj()).sum(dim=1).real
    assert_close(facts_scored(model, relation, EVERY_PAIR), expected)


def test_the_factors_of_complex_are_absolute_values_with_a_gradient_at_zero() -> None:
    model = make("complex")
    assert isinstance(model, ComplEx)
    with torch.no_grad():
        model.entity.weight[2] = 0
    relation, *entities = model.factors(torch.tensor([1]), torch.tensor([[0, 2]]))
    real, imaginary = model.relation.weight[1].chunk(2)
    assert_close(relation, torch.complex(real, imaginary).abs().unsqueeze(0))
    assert_close(entities[1], torch.zeros(1, 6, dtype=torch.float64))
    entities[1].sum().backward()
    assert model.entity.weight.grad is not None
    assert model.entity.weight.grad.coalesce().values().abs().sum() == 0


@given(arity=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
def test_distmult_scores_all_orders_of_the_entities_alike(arity: int, seed: int) -> None:
    """So r(a, b) and r(b, a) are both true or both false: it is not fully expressive."""
    model = make("distmult", arity, seed)
    orders = torch.tensor(list(permutations(range(arity))))
    scores = facts_scored(model, 0, orders)
    assert_close(scores, scores[:1].expand_as(scores))


@pytest.mark.parametrize("name", ["complex", "simple", "hype", "ram", "n-cp", "tucker"])
def test_others_can_learn_that_a_fact_holds_in_one_direction_alone(name: str) -> None:
    model = make(name, norm="none").train()
    pair, turned = torch.tensor([[0, 1]]), torch.tensor([[1, 0]])
    optimiser = torch.optim.Adam([{"params": [p]} for p in model.parameters()], lr=0.05)
    for _ in range(60):
        loss = torch.relu(1 - facts_scored(model, 0, pair)) + torch.relu(
            1 + facts_scored(model, 0, turned)
        )
        optimiser.zero_grad()
        loss.sum().backward()
        for parameter in model.parameters():
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()
        optimiser.step()
    assert facts_scored(model, 0, pair).item() > 0.5
    assert facts_scored(model, 0, turned).item() < -0.5


def test_complex_weights_for_one_direction_by_hand() -> None:
    """With r = i, h = 1 and t = i: Re(r h conj(t)) = 1, and turned round Re(i · i · 1) = −1."""
    model = make("complex", entity_dim=1)
    assert isinstance(model, ComplEx)
    with torch.no_grad():
        model.relation.weight[0] = torch.tensor([0.0, 1.0])
        model.entity.weight[:2] = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert facts_scored(model, 0, torch.tensor([[0, 1], [1, 0]])).tolist() == [1.0, -1.0]


def test_simple_weights_for_one_direction_by_hand() -> None:
    """The head vector of a, the tail vector of b and the relation are 1: only r(a, b) scores."""
    model = make("simple", entity_dim=2)
    assert isinstance(model, SimplE)
    with torch.no_grad():
        model.relation.weight[0] = torch.tensor([1.0, 0.0])
        model.entity.weight[:2] = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert facts_scored(model, 0, torch.tensor([[0, 1], [1, 0]])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_position_of_hype_is_convolution_and_projection(stride: int) -> None:
    model = make("hype", 3, filters=4, filter_width=3, stride=stride)
    assert isinstance(model, HypE)
    e = model.entity.weight.detach()
    for position, matrix in enumerate(model.position_matrices(3)):
        maps = torch.nn.functional.conv1d(
            e.unsqueeze(1), model.filters[position].unsqueeze(1), stride=stride
        )
        assert_close(e @ matrix.T, maps.flatten(1) @ model.projection.flatten(0, 1))


def test_conve_is_asked_for_the_first_entity_alone() -> None:
    model = ConvE(ModelSizes(N_ENTITIES, N_RELATIONS, (2,)), ConvESettings(entity_dim=12))
    with pytest.raises(
        ValueError,
        match=r"^ConvE makes a query for position 0 alone, found 1: wrap it in Reciprocal$",
    ):
        model.query(torch.tensor([0]), torch.tensor([[0, 1]]), 1)
    with pytest.raises(ConfigError, match=r"reciprocal"):
        model_settings("conve", {"reciprocal": False})
    assert model.entity.weight[:, -1].abs().sum() == 0


@pytest.mark.parametrize("name", ["conve", "ram"])
def test_an_open_relation_is_answered_by_trying_each(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, entities = make(name, entity_dim=12), EVERY_PAIR
    assert isinstance(model, DotProductModel)
    scores = model.score_relations(entities)
    for relation in range(N_RELATIONS):
        assert_close(scores[:, relation], facts_scored(model, relation, entities))
    # Fewer than there are facts: one relation at a time.
    monkeypatch.setattr("getd.models.base.RELATION_BATCH", 7)
    assert_close(model.score_relations(entities), scores)
    title = MODELS[name].title
    message = rf"^{title} has no query for an open relation: its score is no dot product "
    with pytest.raises(NotImplementedError, match=message):
        model.relation_query(entities)
    with pytest.raises(NotImplementedError, match=message):
        model.relation_candidates()


def test_images_and_filters_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ShapeError, match=r"^an image of 5 × 2 does not hold entity_dim = 12 numbers$"
    ):
        make("conve", entity_dim=12, embedding_height=5)
    smaller = (
        r"^two images of 1 × 7, one above the other, are smaller than the kernel of 3 × 3; "
        r"choose another entity_dim"
    )
    with pytest.raises(ShapeError, match=smaller):
        make("conve", entity_dim=7)
    with pytest.raises(ShapeError, match=r"^filter_width = 5 is more than entity_dim = 4$"):
        make("hype", entity_dim=4)


def test_dropping_feature_maps_keeps_their_mean() -> None:
    settings = ConvESettings(entity_dim=12, channels=400, feature_dropout=0.25)
    model = ConvE(ModelSizes(N_ENTITIES, N_RELATIONS, (2,)), settings).train()
    kept = model._kept(torch.ones(50, 24))
    assert kept is not None
    assert kept.unique().tolist() == pytest.approx([0, 4 / 3])
    assert kept.mean().item() == pytest.approx(1, abs=0.03)
    assert model.eval()._kept(torch.ones(50, 24)) is None


def test_conve_follows_the_statistics_of_its_feature_maps_as_batch_norm_does() -> None:
    settings = ConvESettings(
        entity_dim=12, channels=2, input_dropout=0, feature_dropout=0, query_dropout=0
    )
    model = (
        ConvE(ModelSizes(N_ENTITIES, N_RELATIONS, (2,)), settings, torch.Generator().manual_seed(0))
        .double()
        .train()
    )
    entities, relation = EVERY_PAIR[:3], torch.tensor([0, 1, 2])
    model.query(relation, entities, 0)

    rows = torch.cat([model.entity(entities[:, 1])[:, :-1], model.relation(relation)], dim=1)
    images = ((rows - rows.mean()) / (rows.var(correction=0) + 1e-5).sqrt()).view(
        3, 1, *model.image
    )
    filters = model.filters.T.reshape(2, 1, model.kernel, model.kernel)
    maps = torch.nn.functional.conv2d(images, filters)
    norm = torch.nn.BatchNorm2d(2).double().train()
    norm(maps)
    assert model.map_norm is not None
    assert_close(model.map_norm.running_mean, norm.running_mean)
    assert_close(model.map_norm.running_var, norm.running_var)


def test_the_gradient_of_feature_maps_is_that_of_the_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    patches = torch.randn(5, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    filters = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    kept = torch.tensor([[[0.0, 2.0, 2.0]], [[2.0, 0.0, 2.0]]], dtype=torch.float64)
    for chosen in (None, kept):
        expected = (patches.T @ filters).relu()
        if chosen is not None:
            expected = (expected.view(2, 3, 3) * chosen).view(6, 3)
        weights = torch.randn(6, 3, generator=generator, dtype=torch.float64)
        inputs = [patches, filters]
        maps = FeatureMaps.apply(*inputs, chosen)
        assert_close(maps, expected)
        assert_close(
            torch.autograd.grad(maps, inputs, weights),
            torch.autograd.grad(expected, inputs, weights),
        )

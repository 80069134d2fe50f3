"""NaLP: all pairs of positions at the price of the positions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.testing import assert_close

import getd.models.nalp
from getd.models.base import ModelSizes
from getd.models.nalp import NaLP, NaLPSettings, _Weakest
from tests.algebra.test_expressiveness import every_fact, ground_truths

SIZES = {"entity_dim": 8, "filters": 10, "units": 12}


def make(arities: tuple[int, ...], **settings: object) -> NaLP:
    chosen = NaLPSettings(**(SIZES | settings))
    return (
        NaLP(ModelSizes(20, 4, arities), chosen, torch.Generator().manual_seed(0)).double().eval()
    )


def batch(arity: int, rows: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(4, (rows,), generator=generator), torch.randint(
        20, (rows, arity), generator=generator
    )


@pytest.mark.parametrize("arity", [1, 2, 3, 6])
def test_minima_of_two_sums_are_the_minimum_of_all_pairs(arity: int) -> None:
    model, (relation, entities) = make((arity,)), batch(arity)
    roles = model.role.weight.view(4, arity, -1)[relation]  # (b, n, d)
    filters = torch.cat([model.role_filters, model.entity_filters], dim=1)
    pictures = torch.cat([roles, model.entity(entities)], dim=2)
    features = (pictures @ filters.T + model.filter_bias).relu()
    pairs = torch.stack(
        [torch.cat([a, b], 1) for a in features.unbind(1) for b in features.unbind(1)]
    )
    layer = torch.cat(model.pair.chunk(2), dim=1)  # on the features of two positions side by side
    related = (pairs @ layer.T + model.pair_bias).relu().amin(dim=0)
    expected = related @ model.output + model.output_bias
    for position in range(arity):
        scores = model.score_candidates(relation, entities, position)
        assert_close(scores.gather(1, entities[:, [position]]).squeeze(1), expected)
    assert_close(model.score_relations(entities).gather(1, relation[:, None]).squeeze(1), expected)


@pytest.mark.parametrize("held", [1, 60])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_scores_do_not_depend_on_how_much_is_held_at_a_time(
    held: int, batch_norm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, (relation, entities) = make((3,), batch_norm=batch_norm), batch(3)
    own = torch.randint(20, (9, 7), generator=torch.Generator().manual_seed(2))

    def scores() -> list[Tensor]:
        scores = [model.score_candidates(relation, entities, 1, ids) for ids in (None, own[0], own)]
        return [*scores, model.score_relations(entities)]

    whole = scores()
    monkeypatch.setattr(getd.models.nalp, "BUDGET", held)
    monkeypatch.setattr(getd.models.nalp, "CACHE_BUDGET", held)
    assert_close(scores(), whole)


def test_the_gradient_made_by_hand_is_that_of_the_formula() -> None:
    generator = torch.Generator().manual_seed(3)
    shapes = (10, 7), (4, 10), (5,)
    inputs = [
        torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes
    ]
    related, least, output = inputs
    smaller = torch.minimum(related, least.unsqueeze(2))
    expected = output @ (smaller[:, :5] + smaller[:, 5:]).relu()
    scores = _Weakest.apply(related, least, output)
    assert_close(scores, expected)
    weights = torch.randn(scores.shape, generator=generator, dtype=torch.float64)
    assert_close(
        torch.autograd.grad(scores, inputs, weights), torch.autograd.grad(expected, inputs, weights)
    )


@settings(max_examples=30)
@given(ground_truths())
def test_nalp_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    """A filter for each role with each entity; a unit for each true fact, which others put out."""
    n_relations, n_entities, arity = truth.shape[0], truth.shape[1], truth.dim() - 1
    roles, true = n_relations * arity, truth.nonzero()  # (F, 1 + n)
    d, filters, units = max(roles, n_entities), roles * n_entities, max(1, len(true))
    model = NaLP(
        ModelSizes(n_entities, n_relations, (arity,)),
        NaLPSettings(entity_dim=d, filters=filters, units=units),
    )
    with torch.no_grad():
        model.role.weight.copy_(torch.eye(d)[:roles])
        model.entity.weight.copy_(torch.eye(d)[:n_entities])
        model.role_filters.copy_(torch.eye(d)[:roles].repeat_interleave(n_entities, dim=0))
        model.entity_filters.copy_(torch.eye(d)[:n_entities].repeat(roles, 1))
        model.filter_bias.fill_(-1)
        model.pair.zero_()
        model.pair[:units] = -1
        for unit, (relation, *entities) in enumerate(true.tolist()):
            for j, e in enumerate(entities):
                model.pair[unit, (relation * arity + j) * n_entities + e] = 0
        model.pair_bias.fill_(0.5)
        model.output.fill_(2)
    facts = every_fact(truth.shape)
    for position in range(arity):
        scores = model.score_candidates(facts[:, 0], facts[:, 1:], position)
        assert torch.equal(
            scores.gather(1, facts[:, [position + 1]]).view(truth.shape), truth.float()
        )


@pytest.mark.parametrize("arity", [2, 4, 7])
def test_many_units_are_alive_at_the_start(arity: int) -> None:
    model = NaLP(ModelSizes(200, 5, (arity,)), NaLPSettings(), torch.Generator().manual_seed(0))
    entities = torch.randint(200, (50, arity), generator=torch.Generator().manual_seed(1))
    scores = model.score_candidates(torch.zeros(50, dtype=torch.long), entities, 0)
    assert 0.02 < scores.std(dim=1).mean() < 2
    scores.sum().backward()
    assert (model.output.grad != 0).float().mean() > 0.5


def test_batch_norm_learns_its_statistics_from_given_entities_and_acts_on_all() -> None:
    model, (relation, entities) = make((3,), batch_norm=True), batch(3)
    norm = model.norms["3"]
    model.train()
    for _ in range(200):
        model.score_positions(relation, entities, entities.unsqueeze(2))
    model.eval()
    mapped = model._roles(relation, range(3)) + model.entity(entities) @ model.entity_filters.T
    assert_close(norm.running_mean, mapped.mean(dim=(0, 1)))
    assert_close(norm.running_var, mapped.flatten(0, 1).var(dim=0))
    plain = make((3,))
    plain.load_state_dict(
        {name: tensor for name, tensor in model.state_dict().items() if "norms" not in name}
    )
    with torch.no_grad():  # the same numbers, written into the filters
        scale = (norm.running_var + norm.eps).rsqrt()
        plain.role_filters *= scale[:, None]
        plain.entity_filters *= scale[:, None]
        plain.filter_bias -= norm.running_mean * scale
    for position in range(3):
        expected = plain.score_candidates(relation, entities, position)
        assert_close(model.score_candidates(relation, entities, position), expected)


def test_roles_of_one_name_are_one_whatever_the_relation() -> None:
    settings = NaLPSettings(entity_dim=3, filters=4, units=5)
    shared = NaLP(
        ModelSizes(6, 2, (2,), roles=[[0, 1], [1, 0]]), settings, torch.Generator().manual_seed(0)
    ).double()
    assert len(shared.role.weight) == 2
    facts = torch.tensor([[2, 4]]), torch.tensor([[4, 2]])
    one = shared.score_candidates(torch.tensor([0]), facts[0], 1)
    other = shared.score_candidates(torch.tensor([1]), facts[1], 0)
    assert_close(one, other)  # the same entities in the same roles
    by_position = NaLPSettings(**settings.model_dump() | {"roles": "position"})
    apart = NaLP(ModelSizes(6, 2, (2,), roles=[[0, 1], [1, 0]]), by_position)
    assert len(apart.role.weight) == 4


def test_facts_of_an_arity_are_normalised_by_their_own_statistics() -> None:
    model, (relation, entities) = make((2, 3), batch_norm=True), batch(2)
    before = model.score_candidates(relation, entities, 0)
    model.norms["3"].running_mean += 1.0
    assert torch.equal(model.score_candidates(relation, entities, 0), before)
    model.norms["2"].running_mean += 1.0
    assert not torch.equal(model.score_candidates(relation, entities, 0), before)

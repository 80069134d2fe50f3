"""An ensemble scores as the weighted sum of its members does, in every way that a model scores."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.errors import ConfigError
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.ensemble import DotProductEnsemble, Ensemble, combine_members, slot_names
from getd.models.registry import MODELS, build_model, make_model, model_settings

N_ENTITIES = 9
N_RELATIONS = 3
ARITIES = (2, 3, 4, 5)
SIZES = ModelSizes(N_ENTITIES, N_RELATIONS, ARITIES)
SETTINGS: dict[str, dict[str, object]] = {
    "getd": {"entity_dim": 3, "relation_dim": 2, "ring_ranks": 2, "initial_scale": 1.0},
    "n-cp": {"entity_dim": 4, "initial_scale": 1.0},
    "distmult": {"entity_dim": 5, "reciprocal": True, "initial_scale": 1.0},
    "encoder": {"entity_dim": 4},
    "nalp": {"entity_dim": 4, "filters": 5, "units": 6},
    "rae": {"entity_dim": 4, "hidden": 5},
}
ENSEMBLES = {  # the members, and whether all of them are dot products
    "dot products": (("getd", "n-cp", "distmult", "encoder"), True),
    "any scores": (("getd", "nalp", "rae"), False),
}


def member(name: str, seed: int = 0) -> ScoringModel:
    generator = torch.Generator().manual_seed(seed)
    return make_model(name, model_settings(name, SETTINGS[name]), SIZES, generator).eval()


def weights_of(n_members: int) -> dict[str, list[float]]:
    """Different ones for each member at each slot."""
    weights = {}
    for row, slot in enumerate(slot_names(ARITIES)):
        weights[slot] = [0.25 * (1 + (row + 2 * column) % 5) for column in range(n_members)]
    return weights


def questions(arity: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(arity)
    relation = torch.randint(N_RELATIONS, (6,), generator=generator)
    return relation, torch.randint(N_ENTITIES, (6, arity), generator=generator)


@pytest.fixture(params=list(ENSEMBLES))
def ensemble(request: pytest.FixtureRequest) -> Ensemble:
    names, _ = ENSEMBLES[request.param]
    members = [member(name, seed) for seed, name in enumerate(names)]
    return combine_members(members, weights_of(len(members))).eval()


@torch.no_grad()
@pytest.mark.parametrize("arity", ARITIES)
def test_scores_are_the_weighted_sum_of_the_members_scores(ensemble: Ensemble, arity: int) -> None:
    relation, entities = questions(arity)
    own = torch.randint(N_ENTITIES, (6, 4), generator=torch.Generator().manual_seed(1))
    weights = weights_of(len(ensemble.members))
    for position in range(arity):
        for candidates in (None, torch.tensor([4, 0, 4]), own):
            expected = torch.zeros(())
            for part, weight in zip(ensemble, weights[f"{arity}-{position}"], strict=True):
                scores = part.score_candidates(relation, entities, position, candidates)
                expected = expected + weight * scores
            actual = ensemble.score_candidates(relation, entities, position, candidates)
            assert_close(actual, expected)


@torch.no_grad()
@pytest.mark.parametrize("arity", ARITIES)
def test_every_way_to_score_gives_the_same(ensemble: Ensemble, arity: int) -> None:
    relation, entities = questions(arity)
    own, _ = ensemble.score_positions(relation, entities, entities.unsqueeze(2))
    for position in range(arity):
        scores = ensemble.score_candidates(relation, entities, position)
        assert_close(own[:, position, 0], scores.gather(1, entities[:, [position]])[:, 0])
        if isinstance(ensemble, DotProductEnsemble):
            table = ensemble.candidates(position)
            query, fill = ensemble.open_questions(relation, entities, position)
            assert_close(query @ table.T, scores)
            assert_close(ensemble.query(relation, entities, position), query)
            filled = entities.clone()
            filled[:, position] = 3
            others = [other for other in range(arity) if other != position]
            expected = ensemble.queries(relation, filled)[:, others]
            assert_close(fill(torch.full((6, 1), 3)), expected)


@torch.no_grad()
def test_an_open_relation_has_weights_of_its_own(ensemble: Ensemble) -> None:
    _, entities = questions(3)
    weights = weights_of(len(ensemble.members))["relation"]
    expected = torch.zeros(6, N_RELATIONS)
    for part, weight in zip(ensemble, weights, strict=True):
        expected += weight * part.score_relations(entities)
    assert_close(ensemble.score_relations(entities), expected)


@pytest.mark.parametrize(("names", "is_product"), ENSEMBLES.values())
def test_only_dot_products_make_a_dot_product(names: tuple[str, ...], is_product: bool) -> None:
    ensemble = combine_members([member(name) for name in names])
    assert isinstance(ensemble, DotProductModel) == ensemble.is_dot_product == is_product


@torch.no_grad()
def test_without_weights_scores_are_the_mean() -> None:
    members = [member("n-cp", seed) for seed in range(3)]
    relation, entities = questions(3)
    for together in (Ensemble(members), combine_members(members)):
        scores = [part.score_candidates(relation, entities, 1) for part in members]
        expected = (scores[0] + scores[1] + scores[2]) / 3
        assert_close(together.eval().score_candidates(relation, entities, 1), expected)
        assert (together.n_entities, together.n_relations, together.arities) == (9, 3, ARITIES)


@torch.no_grad()
def test_joined_candidates_are_kept_until_a_weight_changes() -> None:
    ensemble = combine_members([member("getd"), member("n-cp")])
    assert isinstance(ensemble, DotProductEnsemble)
    first = ensemble.candidates(0)
    assert ensemble.candidates(0) is first
    assert ensemble.candidates(1) is not first  # n-CP has a table for each position
    copy = deepcopy(ensemble).double()
    assert copy.candidates(0).dtype == torch.float64

    ensemble.get_parameter("members.0.entity.weight").mul_(2)
    assert_close(ensemble.candidates(0)[:, :3], 2 * first[:, :3])
    assert_close(copy.candidates(0), first.double())
    same = combine_members([member("getd"), member("getd", 1)])
    assert isinstance(same, DotProductEnsemble)
    assert same.candidates(0) is same.candidates(2)


def test_candidates_joined_in_inference_mode_serve_outside() -> None:
    ensemble = combine_members([member("getd"), member("n-cp")])
    assert isinstance(ensemble, DotProductEnsemble)
    with torch.inference_mode():
        ensemble.candidates(0)
    with torch.no_grad():
        assert not ensemble.candidates(0).is_inference()
    assert ensemble.candidates(0).requires_grad  # not kept: a gradient may flow


def test_tables_of_members_are_named_apart() -> None:
    ensemble = combine_members([member("n-cp"), member("rae"), member("encoder")])
    assert set(ensemble.entity_tables()) == {
        *(f"members.0.entity.{position}" for position in range(5)),
        *("members.1.entity", "members.2.entity"),
    }
    assert {"members.1.normal", "members.2.relation"} < set(ensemble.relation_tables())
    assert set(ensemble.role_tables()) == {"members.2.role"}
    for name, table in ensemble.entity_tables().items():
        assert ensemble.get_parameter(f"{name}.weight") is table.weight


def test_a_model_of_its_settings_takes_its_weights() -> None:
    members = [{"name": name, **SETTINGS[name]} for name in ("getd", "rae")]
    ensemble = combine_members([member("getd"), member("rae")], weights_of(2))
    again = build_model("combined", {"members": members}, SIZES)
    again.load_state_dict(ensemble.state_dict())
    assert torch.equal(again.get_buffer("weights"), ensemble.weights)
    assert type(build_model("n-cp", SETTINGS["n-cp"], SIZES)) is MODELS["n-cp"].model


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (None, "expected model.members to list the settings of models"),
        ([1, 2], "expected model.members to list the settings of models"),
        ([{"name": "n-cp"}], "expected model.members to list two or more, found 1"),
        ([{}, {}], "expected the name of a model, found None"),
        ([{"name": "n-cp", "x": 1}, {"name": "n-cp"}], "no setting model.x"),
        (
            [{"name": "combined", "members": []}] * 2,
            "a combined model is not trained; getd combine makes it from runs",
        ),
    ],
)
def test_wrong_members_are_refused(members: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_model("combined", {"members": members}, SIZES)
    assert str(caught.value) == message

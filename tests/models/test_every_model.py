"""Every learnt model passes the same battery, for facts of two to five entities."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.testing import assert_close

from getd.algebra.ring import ring_to_tensor
from getd.errors import ConfigError, ShapeError
from getd.models.base import DotProductModel
from getd.models.getd import GETD, GETDSettings
from getd.models.n_cp import NCP, NCPSettings
from getd.models.n_tucker import NTuckER, NTuckERSettings
from getd.models.registry import MODELS, make_model, model_settings
from tests.models import reference_models as reference

N_ENTITIES, N_RELATIONS, ROWS = 7, 3, 6
TINY = {
    "getd": {"entity_dim": 3, "relation_dim": 2, "ring_ranks": 2},
    "n-cp": {"entity_dim": 4},
    "n-tucker": {"entity_dim": 3, "relation_dim": 2},
}
Case = tuple[DotProductModel, Tensor, Tensor]


def make(name: str, arity: int | tuple[int, ...], **settings: object) -> DotProductModel:
    arities = (arity,) if isinstance(arity, int) else arity
    generator = torch.Generator().manual_seed(0)
    checked = model_settings(name, {**TINY[name], **settings})
    model = make_model(name, checked, N_ENTITIES, N_RELATIONS, arities, generator).double()
    for module in model.modules():  # statistics as after some training
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model.eval()


def batch(arity: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    relation = torch.randint(N_RELATIONS, (ROWS,), generator=generator)
    return relation, torch.randint(N_ENTITIES, (ROWS, arity), generator=generator)


def test_every_model_is_in_the_battery() -> None:
    assert set(TINY) == set(MODELS)


@pytest.fixture(params=[(name, arity) for name in TINY for arity in (2, 3, 4, 5)], ids=lambda p: f"{p[0]}-{p[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    name, arity = request.param
    return (make(name, arity), *batch(arity))


def test_every_entity_and_relation_gets_one_finite_score(case: Case) -> None:
    model, relation, entities = case
    for position in range(entities.shape[1]):
        scores = model.score_candidates(relation, entities, position)
        assert scores.shape == (ROWS, N_ENTITIES)
        assert scores.isfinite().all()
    assert model.score_relations(entities).shape == (ROWS, N_RELATIONS)


def test_the_answer_in_the_open_place_is_never_read(case: Case) -> None:
    model, relation, entities = case
    for position in range(entities.shape[1]):
        blanked = entities.clone()
        blanked[:, position] = 0
        assert_close(model.queries(relation, blanked)[:, position], model.queries(relation, entities)[:, position])
        blanked[:, position] = -(10**9)
        expected = model.score_candidates(relation, entities, position)
        assert torch.equal(model.score_candidates(relation, blanked, position), expected)


def test_rows_of_a_batch_do_not_disturb_each_other(case: Case) -> None:
    model, relation, entities = case
    together = model.score_candidates(relation, entities, 0)
    alone = [model.score_candidates(relation[i : i + 1], entities[i : i + 1], 0) for i in range(ROWS)]
    assert_close(together, torch.cat(alone))


def test_all_positions_at_once_equal_one_by_one(case: Case) -> None:
    model, relation, entities = case
    one_by_one = [model.query(relation, entities, p) for p in range(entities.shape[1])]
    assert_close(model.queries(relation, entities), torch.stack(one_by_one, dim=1))


def test_chosen_candidates_have_the_scores_they_have_among_all(case: Case) -> None:
    model, relation, entities = case
    chosen = torch.tensor([4, 0, 4])
    assert_close(
        model.score_candidates(relation, entities, 1, chosen), model.score_candidates(relation, entities, 1)[:, chosen]
    )


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize("name", TINY)
def test_without_batch_norm_scores_equal_nested_loops(name: str, arity: int) -> None:
    model = make(name, arity, batch_norm=False)
    relation, entities = batch(arity)
    for row in range(2):
        for position in range(arity):
            scores = model.score_candidates(relation[row : row + 1], entities[row : row + 1], position)[0]
            for candidate in (0, 5):
                fact = entities[row].tolist()
                fact[position] = candidate
                assert scores[candidate].item() == pytest.approx(reference.score(model, int(relation[row]), fact))
        relations = model.score_relations(entities[row : row + 1])[0]
        for r in range(N_RELATIONS):
            assert relations[r].item() == pytest.approx(reference.score(model, r, entities[row].tolist()))


def test_every_parameter_takes_part_in_training(case: Case) -> None:
    model, relation, entities = case
    model.train()
    queries = model.queries(relation, entities)
    scores = sum(((queries[:, p] @ model.candidates(p).T) ** 2).sum() for p in range(entities.shape[1]))
    (scores + (model.score_relations(entities) ** 2).sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("arity", [2, 3, 4, 5])
@pytest.mark.parametrize("name", TINY)
def test_renaming_entities_permutes_scores(name: str, arity: int) -> None:
    model, (relation, entities) = make(name, arity), batch(arity)
    new_name = torch.randperm(N_ENTITIES, generator=torch.Generator().manual_seed(2))
    renamed = make(name, arity)
    weights = model.state_dict()
    moved = {
        key: torch.empty_like(w).index_copy_(0, new_name, w)
        for key, w in weights.items()
        if len(w.shape) and len(w) == N_ENTITIES and key.startswith("entity.")
    }
    renamed.load_state_dict({**weights, **moved})
    for position in range(arity):
        expected = model.score_candidates(relation, entities, position)
        assert_close(renamed.score_candidates(relation, new_name[entities], position)[:, new_name], expected)


def test_what_is_saved_scores_the_same_to_the_bit(case: Case, tmp_path: Path) -> None:
    model, relation, entities = case
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    name = next(name for name, (kind, _) in MODELS.items() if isinstance(model, kind))
    again = make_model(name, model_settings(name, TINY[name]), N_ENTITIES, N_RELATIONS, model.arities).double().eval()
    again.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert torch.equal(again.queries(relation, entities), model.queries(relation, entities))


@pytest.mark.parametrize("name", TINY)
def test_a_model_of_mixed_arity_shares_its_entities(name: str) -> None:
    model = make(name, (1, 2, 4))
    for arity in (1, 2, 4):
        relation, entities = batch(arity)
        assert model.score_candidates(relation, entities, arity - 1).shape == (ROWS, N_ENTITIES)
    with pytest.raises(ValueError, match=r"^the model was made for facts of arity 1, 2, 4, found 3$"):
        model.queries(*batch(3))


@pytest.mark.parametrize("name", TINY)
def test_a_batch_of_one_fact_can_be_learnt_from(name: str) -> None:
    model = make(name, 2).train()
    relation, entities = batch(2)
    assert model.queries(relation[:1], entities[:1]).isfinite().all()


@pytest.mark.parametrize(
    ("shape", "ranks"),
    [(None, 3), (None, (1, 2, 3, 2)), ((2, 3, 3, 3), 2), ((6, 3, 3), 2), ((2, 9, 3), (2, 3, 1)), ((2, 27), 3)],
)
def test_getd_with_any_ring_is_n_tucker_with_the_multiplied_out_core(
    shape: tuple[int, ...] | None, ranks: int | tuple[int, ...]
) -> None:
    ring = make("getd", 3, ring_shape=shape, ring_ranks=ranks)
    dense = make("n-tucker", 3)
    weights = {name: tensor for name, tensor in ring.state_dict().items() if not name.startswith("rings")}
    cores = [core.detach() for core in ring.rings["3"]]
    multiplied = ring_to_tensor(cores)
    dense.load_state_dict({**weights, "cores.3": multiplied.reshape(2, 3, 3, 3)})
    relation, entities = batch(3)
    assert_close(ring.queries(relation, entities), dense.queries(relation, entities))
    assert_close(ring.score_relations(entities), dense.score_relations(entities))


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_n_cp_with_tied_tables_is_distmult(arity: int) -> None:
    model = make("n-cp", arity, batch_norm=False)
    assert isinstance(model, NCP)
    for table in model.entity[1:]:
        table.load_state_dict(model.entity[0].state_dict())
    relation, entities = batch(arity)
    scores = model.score_candidates(relation, entities, 0)
    for row in range(ROWS):
        fact = [3, *entities[row, 1:].tolist()]
        expected = reference.distmult(
            model.relation.weight.detach(), model.entity[0].weight.detach(), int(relation[row]), fact
        )
        assert scores[row, 3].item() == pytest.approx(expected)


def test_a_ring_of_rank_one_is_a_product_of_linear_forms() -> None:
    model = make("getd", 3, ring_ranks=1, batch_norm=False)
    assert isinstance(model, GETD)
    relation, entities = batch(3)
    forms = [core.detach().flatten() for core in model.rings["3"]]
    e = model.entity.weight.detach()
    expected = (model.relation.weight.detach()[relation] @ forms[0])[:, None]
    expected = expected * (e[entities[:, 0]] @ forms[1])[:, None] * (e[entities[:, 1]] @ forms[2])[:, None]
    assert_close(model.score_candidates(relation, entities, 2), expected * (e @ forms[3]))


@pytest.mark.parametrize(("name", "expected"), [("getd", 422_340), ("n-tucker", 24_587_340), ("n-cp", 1_144_860)])
def test_parameters_for_wikipeople_4_are_those_of_the_paper(name: str, expected: int) -> None:
    rings = {"ring_ranks": 30} if name == "getd" else {}
    settings = model_settings(name, {"entity_dim": 30, "batch_norm": False, **rings})
    with torch.device("meta"):
        model = make_model(name, settings, 9528, 50, (4,))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_sizes_that_do_not_fit_are_refused() -> None:
    told = (
        r"^ring_shape \(5, 5\) holds 25 numbers but the core \(2, 3, 3\) holds 18: choose sizes with the same product$"
    )
    with pytest.raises(ShapeError, match=told):
        make("getd", 2, ring_shape=(5, 5))
    with pytest.raises(ShapeError, match=r"^ring_shape is for facts of one arity; leave it out for mixed arities$"):
        make("getd", (2, 3), ring_shape=(18,))
    with pytest.raises(
        ShapeError, match=r"^the core of 50·50\^5 = 15,625,000,000 numbers is too large; lower entity_dim$"
    ):
        NTuckER(10, 2, (5,), NTuckERSettings(entity_dim=50))


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"^no model 'gted'; did you mean 'getd'\? \(there are getd, n-cp, n-tucker\)$"
    ):
        model_settings("gted", {})
    with pytest.raises(ConfigError, match=r"^no setting model.ring_rank; did you mean 'ring_ranks'\?$"):
        model_settings("getd", {"ring_rank": 3})


def test_the_seed_decides_the_weights() -> None:
    def weights(seed: int) -> Tensor:
        return GETD(4, 2, (2,), GETDSettings(), torch.Generator().manual_seed(seed)).entity.weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert NCP(4, 2, (2,), NCPSettings(initial_scale=1e-6)).relation.weight.abs().max() < 1e-4

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
from getd.models.base import DotProductModel, ModelSizes, ScoringModel
from getd.models.conve import ConvE
from getd.models.getd import GETD, GETDSettings
from getd.models.layers import NormDropout
from getd.models.n_cp import NCP, NCPSettings
from getd.models.n_tucker import NTuckER, NTuckERSettings
from getd.models.norms import batch_norms, taking_statistics
from getd.models.registry import MODELS, make_model, model_settings
from tests.models import reference_models as reference

N_ENTITIES, N_RELATIONS, ROWS = 7, 3, 6
TINY: dict[str, dict[str, object]] = {
    "getd": {"entity_dim": 3, "relation_dim": 2, "ring_ranks": 2},
    "n-cp": {"entity_dim": 4},
    "n-tucker": {"entity_dim": 3, "relation_dim": 2},
    "distmult": {"entity_dim": 4},
    "simple": {"entity_dim": 6},
    "hype": {"entity_dim": 6, "filters": 2, "filter_width": 3},
    "ram": {"entity_dim": 3, "latent": 4},
    "m-transh": {"entity_dim": 4},
    "rae": {"entity_dim": 4, "hidden": 5},
    "nalp": {"entity_dim": 4, "filters": 5, "units": 6},
    "encoder": {"entity_dim": 4},
    "tucker": {"entity_dim": 3, "relation_dim": 2},
    "complex": {"entity_dim": 3},
    "conve": {"entity_dim": 12, "channels": 2},
    "transe": {"entity_dim": 4},
}
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {  # other forms that must keep the same laws
    "n-cp+reciprocal": ("n-cp", {"reciprocal": True}),
    "n-cp+shared norms": ("n-cp", {"norms_by_position": False}),
    "getd+reciprocal": ("getd", {"reciprocal": True}),
    "getd+own norms": ("getd", {"norms_by_position": True}),
    "getd+rms": ("getd", {"norm": "rms"}),
    "getd+own rms": ("getd", {"norm": "rms", "norms_by_position": True}),
    "ram+own norms": ("ram", {"norms_by_position": True}),
    "distmult+reciprocal": ("distmult", {"reciprocal": True}),
    "distmult+norm": ("distmult", {"norm": "batch"}),
    "simple+reciprocal": ("simple", {"reciprocal": True}),
    "simple+norm": ("simple", {"norm": "rms"}),
    "hype+reciprocal": ("hype", {"reciprocal": True}),
    "hype+bare": ("hype", {"norm": "none"}),
    "ram+reciprocal": ("ram", {"reciprocal": True}),
    "ram+bare": ("ram", {"norm": "none", "multiplicity": 3}),
    "complex+reciprocal": ("complex", {"reciprocal": True}),
    "complex+norm": ("complex", {"norm": "batch"}),
    "m-transh+p1": ("m-transh", {"p": 1}),
    "rae+squared": ("rae", {"squared": True, "relatedness": 0.3}),
    "rae+p1+squared": ("rae", {"p": 1, "squared": True}),
    "nalp+norm": ("nalp", {"batch_norm": True}),
    "encoder+ring": ("encoder", {"ring_query_ranks": 3, "ring_query_dim": 5}),
    "encoder+attention": ("encoder", {"kind": "attention", "heads": 2}),
    "transe+p2": ("transe", {"p": 2}),
    "transe+unit": ("transe", {"unit_entities": True}),
}
FORMS = {name: (name, settings) for name, settings in TINY.items()}
FORMS |= {form: (name, TINY[name] | more) for form, (name, more) in VARIANTS.items()}
Case = tuple[ScoringModel, Tensor, Tensor]


def make(form: str, arity: int | tuple[int, ...], **settings: object) -> ScoringModel:
    arities = (arity,) if isinstance(arity, int) else arity
    generator = torch.Generator().manual_seed(0)
    name, tiny = FORMS[form]
    checked = model_settings(name, tiny | settings)
    model = make_model(
        name, checked, ModelSizes(N_ENTITIES, N_RELATIONS, arities), generator
    ).double()
    for module in model.modules():  # statistics as after some training
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model.eval()


def batch(arity: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    relation = torch.randint(N_RELATIONS, (ROWS,), generator=generator)
    return relation, torch.randint(N_ENTITIES, (ROWS, arity), generator=generator)


def forms_and_arities(*arities: int) -> list[tuple[str, int]]:
    """Every form with each of these arities that it serves."""
    return [
        (form, n)
        for form, (name, _) in FORMS.items()
        for n in arities
        if n == 2 or not MODELS[name].model.binary_only
    ]


def dot_product(model: ScoringModel) -> DotProductModel:
    if not isinstance(model, DotProductModel):
        pytest.skip("the score is no dot product")
    return model


def test_every_model_is_in_the_battery() -> None:
    assert set(TINY) == set(MODELS)


@pytest.fixture(params=forms_and_arities(2, 3, 4, 5), ids=lambda p: f"{p[0]}-{p[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    form, arity = request.param
    return (make(form, arity), *batch(arity))


def test_every_entity_and_relation_gets_one_finite_score(case: Case) -> None:
    model, relation, entities = case
    for position in range(entities.shape[1]):
        scores = model.score_candidates(relation, entities, position)
        assert scores.shape == (ROWS, N_ENTITIES)
        assert scores.isfinite().all()
        assert scores.std() > 0
    relations = model.score_relations(entities)
    assert relations.shape == (ROWS, N_RELATIONS)
    assert relations.isfinite().all()


def test_the_answer_in_the_open_place_is_never_read(case: Case) -> None:
    model, relation, entities = case
    for position in range(entities.shape[1]):
        blanked = entities.clone()
        if isinstance(model, DotProductModel):
            blanked[:, position] = 0
            assert_close(
                model.queries(relation, blanked)[:, position],
                model.queries(relation, entities)[:, position],
            )
        blanked[:, position] = -(10**9)
        expected = model.score_candidates(relation, entities, position)
        assert torch.equal(model.score_candidates(relation, blanked, position), expected)


def test_rows_of_a_batch_do_not_disturb_each_other(case: Case) -> None:
    model, relation, entities = case
    together = model.score_candidates(relation, entities, 0)
    alone = [
        model.score_candidates(relation[i : i + 1], entities[i : i + 1], 0) for i in range(ROWS)
    ]
    assert_close(together, torch.cat(alone))
    relations = [model.score_relations(entities[i : i + 1]) for i in range(ROWS)]
    assert_close(model.score_relations(entities), torch.cat(relations))


def test_all_positions_at_once_equal_one_by_one(case: Case) -> None:
    model, relation, entities = case
    model = dot_product(model)
    one_by_one = [model.query(relation, entities, p) for p in range(entities.shape[1])]
    assert_close(model.queries(relation, entities), torch.stack(one_by_one, dim=1))
    if model.relation_is_dot_product:
        queries, relation_query = model.all_queries(relation, entities)
        assert_close(queries, torch.stack(one_by_one, dim=1))
        assert_close(relation_query, model.relation_query(entities))
    else:
        with pytest.raises(NotImplementedError, match=r"^\w+ has no query for an open relation"):
            model.all_queries(relation, entities)


def test_questions_that_are_filled_have_the_queries_of_the_facts_they_make(case: Case) -> None:
    model, relation, entities = case
    model = dot_product(model)
    n = entities.shape[1]
    candidates = torch.randint(N_ENTITIES, (ROWS, 3), generator=torch.Generator().manual_seed(5))
    for position in range(n):
        blanked = entities.clone()
        blanked[:, position] = -(10**9)
        query, fill = model.open_questions(relation, blanked, position)
        assert_close(query, model.query(relation, entities, position))

        queries = fill(candidates).unflatten(0, candidates.shape)
        others = [other for other in range(n) if other != position]
        for index, column in enumerate(candidates.unbind(1)):
            facts = entities.clone()
            facts[:, position] = column
            assert_close(queries[:, index], model.queries(relation, facts)[:, others])


def test_chosen_candidates_have_the_scores_they_have_among_all(case: Case) -> None:
    model, relation, entities = case
    chosen = torch.tensor([4, 0, 4])
    own = torch.randint(N_ENTITIES, (ROWS, 5), generator=torch.Generator().manual_seed(3))
    for position in range(entities.shape[1]):
        everyone = model.score_candidates(relation, entities, position)
        assert_close(
            model.score_candidates(relation, entities, position, chosen), everyone[:, chosen]
        )
        assert_close(
            model.score_candidates(relation, entities, position, own), everyone.gather(1, own)
        )


def test_candidates_of_all_positions_have_the_scores_they_have_at_each(case: Case) -> None:
    model, relation, entities = case
    generator, n = torch.Generator().manual_seed(4), entities.shape[1]
    own = torch.randint(N_ENTITIES, (ROWS, n, 2), generator=generator)
    shared = torch.randint(N_ENTITIES, (n, 3), generator=generator)
    everyone = [model.score_candidates(relation, entities, position) for position in range(n)]
    own_scores, shared_scores = model.score_positions(relation, entities, own, shared)
    for position, scores in enumerate(everyone):
        assert_close(own_scores[:, position], scores.gather(1, own[:, position]))
        assert_close(shared_scores[:, position], scores[:, shared[position]])
    alone, nothing = model.score_positions(relation, entities, own)
    assert_close(alone, own_scores)
    assert nothing is None


def trained_in_batches() -> list[tuple[str, int]]:
    """The forms whose training depends on what else is in a batch."""
    return [
        (form, arity) for form, arity in forms_and_arities(2, 3) if batch_norms(make(form, arity))
    ]


@pytest.mark.parametrize("n_relations", [1, N_RELATIONS])
@pytest.mark.parametrize(("form", "arity"), trained_in_batches())
def test_facts_score_in_evaluation_as_they_did_in_training(
    form: str, arity: int, n_relations: int
) -> None:
    """Also where there is a single relation, whose vector does not vary at all."""
    model, generator = make(form, arity), torch.Generator().manual_seed(2)
    relation = torch.randint(n_relations, (400,), generator=generator)
    entities = torch.randint(N_ENTITIES, (400, arity), generator=generator)

    def own_scores() -> Tensor:
        return model.score_positions(relation, entities, entities.unsqueeze(2))[0]

    for norm in batch_norms(model):
        if norm.bias is not None:  # which is all that is left of what does not vary
            torch.nn.init.normal_(norm.bias, generator=generator)
    with taking_statistics(model, batch_norms(model)):
        model.pass_through(relation, entities)
    evaluated = own_scores()

    model.train()
    for part in model.modules():
        if isinstance(part, NormDropout):
            part.dropout = 0.0
        elif isinstance(part, ConvE):
            part.feature_dropout = 0.0
    # The variance that is kept is that of a sample, larger by n / (n - 1).
    assert_close(evaluated, own_scores(), rtol=0.02, atol=0.02 * evaluated.abs().max().item())


@pytest.mark.parametrize(("form", "arity"), forms_and_arities(2, 3, 4))
def test_without_a_norm_scores_equal_nested_loops(form: str, arity: int) -> None:
    kept = model_settings(*FORMS[form]).model_dump()
    bare = {
        name: value for name, value in (("norm", "none"), ("batch_norm", False)) if name in kept
    }
    model = make(form, arity, **bare)
    relation, entities = batch(arity)
    for row in range(2):
        for position in range(arity):
            scores = model.score_candidates(
                relation[row : row + 1], entities[row : row + 1], position
            )[0]
            for candidate in (0, 5):
                fact = entities[row].tolist()
                fact[position] = candidate
                expected = reference.score(model, int(relation[row]), fact, position)
                assert scores[candidate].item() == pytest.approx(expected)
        relations = model.score_relations(entities[row : row + 1])[0]
        for r in range(N_RELATIONS):
            assert relations[r].item() == pytest.approx(
                reference.score(model, r, entities[row].tolist(), None)
            )


def test_every_parameter_takes_part_in_training(case: Case) -> None:
    model, relation, entities = case
    model.train()
    scores = [model.score_candidates(relation, entities, p) for p in range(entities.shape[1])]
    sum(((part + 1) ** 2).sum() for part in [*scores, model.score_relations(entities)]).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_what_few_candidates_teach_stays_in_their_rows(case: Case) -> None:
    """The gradient of every entity table is sparse, and of the rows that were looked up alone."""
    model, _, entities = case
    relation, facts = torch.zeros(1, dtype=torch.long), torch.zeros_like(entities[:1])
    model.train()
    own = torch.tensor([0, 2]).expand(1, entities.shape[1], 2)
    (model.score_positions(relation, facts, own)[0] ** 2).sum().backward()
    tables = model.entity_tables()
    assert tables
    for name, table in tables.items():
        grad = table.weight.grad
        assert grad is not None, name
        assert grad.is_sparse, name
        assert set(grad.coalesce().indices()[0].tolist()) <= {0, 2}, name


@pytest.mark.parametrize("form", FORMS)
def test_a_model_names_its_tables(form: str) -> None:
    """Entity tables are all that grows with entities, relation and role tables with relations."""
    name, values = FORMS[form]
    settings = model_settings(name, values)

    def shapes(n_entities: int, n_relations: int) -> dict[str, tuple[int, ...]]:
        model = make_model(name, settings, ModelSizes(n_entities, n_relations, (2,)))
        return {key: tuple(weight.shape) for key, weight in model.named_parameters()}

    model = make_model(name, settings, ModelSizes(7, 3, (2,)))
    before = shapes(7, 3)
    grown = {key for key, shape in shapes(8, 3).items() if shape != before[key]}
    assert grown == {f"{key}.weight" for key in model.entity_tables()}
    grown = {key for key, shape in shapes(7, 4).items() if shape != before[key]}
    assert grown == {f"{key}.weight" for key in {**model.relation_tables(), **model.role_tables()}}


@pytest.mark.parametrize(("form", "arity"), forms_and_arities(2, 3, 4, 5))
def test_renaming_entities_permutes_scores(form: str, arity: int) -> None:
    model, (relation, entities) = make(form, arity), batch(arity)
    new_name = torch.randperm(N_ENTITIES, generator=torch.Generator().manual_seed(2))
    renamed = make(form, arity)
    weights = model.state_dict()
    moved = {
        key: torch.empty_like(w).index_copy_(0, new_name, w)
        for key, w in weights.items()
        if len(w.shape) and len(w) == N_ENTITIES and "entity" in key.split(".")
    }
    assert moved
    renamed.load_state_dict({**weights, **moved})
    for position in range(arity):
        expected = model.score_candidates(relation, entities, position)
        assert_close(
            renamed.score_candidates(relation, new_name[entities], position)[:, new_name], expected
        )


@pytest.mark.parametrize(("form", "arity"), forms_and_arities(2, 3, 4, 5))
def test_what_is_saved_scores_the_same_to_the_bit(form: str, arity: int, tmp_path: Path) -> None:
    model, (relation, entities) = make(form, arity), batch(arity)
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    name, settings = FORMS[form]
    again = (
        make_model(
            name, model_settings(name, settings), ModelSizes(N_ENTITIES, N_RELATIONS, model.arities)
        )
        .double()
        .eval()
    )
    again.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    for position in range(arity):
        expected = model.score_candidates(relation, entities, position)
        assert torch.equal(again.score_candidates(relation, entities, position), expected)


@pytest.mark.parametrize("form", [form for form, _ in forms_and_arities(3)])
def test_a_model_of_mixed_arity_shares_its_entities(form: str) -> None:
    model = make(form, (1, 2, 4))
    for arity in (1, 2, 4):
        relation, entities = batch(arity)
        assert model.score_candidates(relation, entities, arity - 1).shape == (ROWS, N_ENTITIES)
    with pytest.raises(
        ValueError, match=r"^the model was made for facts of arity 1, 2, 4, found 3$"
    ):
        model.score_candidates(*batch(3), 0)


@pytest.mark.parametrize(
    "form", [form for form, _ in forms_and_arities(3) if FORMS[form][0] not in ("nalp", "encoder")]
)
def test_a_model_of_mixed_arity_scores_facts_as_one_of_their_arity_alone(form: str) -> None:
    """Norms, rings and cores are those of the facts' own arity, whatever else there is."""
    mixed = make(form, (2, 3, 4))
    weights = mixed.state_dict()
    for arity in (2, 3, 4):
        alone, (relation, entities) = make(form, arity), batch(arity)
        own = {
            name: weights[name][tuple(map(slice, old.shape))]
            for name, old in alone.state_dict().items()
        }
        alone.load_state_dict(own)
        for position in range(arity):
            expected = alone.score_candidates(relation, entities, position)
            assert_close(mixed.score_candidates(relation, entities, position), expected)
        assert_close(mixed.score_relations(entities), alone.score_relations(entities))


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_of_one_fact_can_be_learnt_from(form: str) -> None:
    model = make(form, 2).train()
    relation, entities = batch(2)
    assert model.score_candidates(relation[:1], entities[:1], 0).isfinite().all()


@pytest.mark.parametrize(("form", "arity"), forms_and_arities(2, 3, 4))
def test_factors_are_vectors_of_the_fact(form: str, arity: int) -> None:
    model, (relation, entities) = make(form, arity), batch(arity)
    assert len(model.factors(relation, entities)) == 1 + arity
    assert all(factor.dim() == 2 for factor in model.factors(relation, entities))
    for position in range(arity):
        blanked = entities.index_fill(1, torch.tensor(position), 0)
        given = model.given_factors(relation, entities, position)
        assert len(given) == arity
        for one, other in zip(given, model.given_factors(relation, blanked, position), strict=True):
            assert_close(one, other)


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_reciprocal_relations_ask_with_what_is_open_first(arity: int) -> None:
    model, (relation, entities) = make("getd+reciprocal", arity), batch(arity)
    plain = model.inner
    for position in range(arity):
        turned = torch.cat([entities[:, position:], entities[:, :position]], dim=1)
        expected = plain.score_candidates(relation + N_RELATIONS * position, turned, 0)
        assert_close(model.score_candidates(relation, entities, position), expected)


@pytest.mark.parametrize(
    "name", [name for name, entry in MODELS.items() if entry.model.binary_only]
)
def test_a_model_of_two_entities_refuses_more_and_names_those_that_do(name: str) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"^{name} is for facts of two entities, found arity 3, 4; for any arity: getd, ",
    ):
        make(name, (2, 3, 4))


@pytest.mark.parametrize(
    ("shape", "ranks"),
    [
        (None, 3),
        (None, (1, 2, 3, 2)),
        ((2, 3, 3, 3), 2),
        ((6, 3, 3), 2),
        ((2, 9, 3), (2, 3, 1)),
        ((2, 27), 3),
    ],
)
def test_getd_with_any_ring_is_n_tucker_with_the_multiplied_out_core(
    shape: tuple[int, ...] | None, ranks: int | tuple[int, ...]
) -> None:
    ring = make("getd", 3, ring_shape=shape, ring_ranks=ranks)
    dense = make("n-tucker", 3)
    weights = {
        name: tensor for name, tensor in ring.state_dict().items() if not name.startswith("rings")
    }
    cores = [core.detach() for core in ring.rings["3"]]
    multiplied = ring_to_tensor(cores)
    dense.load_state_dict({**weights, "cores.3": multiplied.reshape(2, 3, 3, 3)})
    relation, entities = batch(3)
    assert_close(ring.queries(relation, entities), dense.queries(relation, entities))
    assert_close(ring.score_relations(entities), dense.score_relations(entities))


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_n_cp_with_tied_tables_is_distmult(arity: int) -> None:
    model = make("n-cp", arity, norm="none")
    assert isinstance(model, NCP)
    for table in model.entity[1:]:
        table.load_state_dict(model.entity[0].state_dict())
    relation, entities = batch(arity)
    scores = model.score_candidates(relation, entities, 0)
    for row in range(ROWS):
        fact = [3, *entities[row, 1:].tolist()]
        expected = reference.distmult(
            model.relation.weight.detach(),
            model.entity[0].weight.detach(),
            int(relation[row]),
            fact,
        )
        assert scores[row, 3].item() == pytest.approx(expected)


def test_a_ring_of_rank_one_is_a_product_of_linear_forms() -> None:
    model = make("getd", 3, ring_ranks=1, norm="none")
    assert isinstance(model, GETD)
    relation, entities = batch(3)
    forms = [core.detach().flatten() for core in model.rings["3"]]
    e = model.entity.weight.detach()
    expected = (model.relation.weight.detach()[relation] @ forms[0])[:, None]
    expected = (
        expected * (e[entities[:, 0]] @ forms[1])[:, None] * (e[entities[:, 1]] @ forms[2])[:, None]
    )
    assert_close(model.score_candidates(relation, entities, 2), expected * (e @ forms[3]))


def test_cores_may_start_as_the_authors_have_them() -> None:
    settings = {"entity_dim": 20, "ring_ranks": 9}
    for start, deviation in (("released", 0.1 / 3**0.5), ("scaled", 1 / 180**0.5)):
        cores = torch.stack([*make("getd", 2, ring_start=start, **settings).rings["2"]][1:])
        assert cores.mean().item() == pytest.approx(0, abs=0.01)
        assert cores.std().item() == pytest.approx(deviation, rel=0.05)
        assert (cores.abs().max() <= 0.1) == (start == "released")


@pytest.mark.parametrize(
    ("name", "expected"), [("getd", 422_340), ("n-tucker", 24_587_340), ("n-cp", 1_144_860)]
)
def test_parameters_for_wikipeople_4_are_those_of_the_paper(name: str, expected: int) -> None:
    rings = {"ring_ranks": 30} if name == "getd" else {}
    settings = model_settings(name, {"entity_dim": 30, "norm": "none", **rings})
    with torch.device("meta"):
        model = make_model(name, settings, ModelSizes(9528, 50, (4,)))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_sizes_that_do_not_fit_are_refused() -> None:
    message = (
        r"^ring_shape \(5, 5\) holds 25 numbers but the core \(2, 3, 3\) holds 18: "
        r"choose sizes with the same product$"
    )
    with pytest.raises(ShapeError, match=message):
        make("getd", 2, ring_shape=(5, 5))
    with pytest.raises(
        ShapeError, match=r"^ring_shape is for facts of one arity; leave it out for mixed arities$"
    ):
        make("getd", (2, 3), ring_shape=(18,))
    with pytest.raises(
        ShapeError,
        match=r"^the core of 50·50\^5 = 15,625,000,000 numbers is too large; lower entity_dim$",
    ):
        NTuckER(ModelSizes(10, 2, (5,)), NTuckERSettings(entity_dim=50))


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^no model 'gted'; did you mean 'getd'\? \(there are getd, n-cp, n-tucker, ",
    ):
        model_settings("gted", {})
    with pytest.raises(
        ConfigError, match=r"^no setting model.ring_rank; did you mean 'ring_ranks'\?$"
    ):
        model_settings("getd", {"ring_rank": 3})


def test_the_seed_decides_the_weights() -> None:
    def weights(seed: int) -> Tensor:
        return GETD(
            ModelSizes(4, 2, (2,)), GETDSettings(), torch.Generator().manual_seed(seed)
        ).entity.weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
    assert (
        NCP(ModelSizes(4, 2, (2,)), NCPSettings(initial_scale=1e-6)).relation.weight.abs().max()
        < 1e-4
    )


@pytest.mark.parametrize("arity", [2, 3])
def test_a_dense_core_is_made_so_that_queries_are_as_large_as_vectors(arity: int) -> None:
    checked = model_settings(
        "n-tucker", {"entity_dim": 10, "batch_norm": False, "initial_scale": 1.0}
    )
    model = make_model(
        "n-tucker", checked, ModelSizes(200, 200, (arity,)), torch.Generator().manual_seed(0)
    ).eval()
    entities = torch.randint(200, (200, arity), generator=torch.Generator().manual_seed(1))
    assert 0.6 < dot_product(model).queries(torch.arange(200), entities).std() < 1.6

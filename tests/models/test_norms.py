"""What is evaluated is what was trained: norms cannot tell a batch from all training facts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from getd.errors import ConfigError
from getd.models.base import ModelSizes, ScoringModel
from getd.models.norms import BatchNorm, batch_norms, make_norm, taking_statistics
from getd.models.registry import make_model, model_settings
from getd.runs.config import Config

N_ENTITIES = 9


def make(**settings: object) -> ScoringModel:
    checked = model_settings(
        "getd", {"entity_dim": 4, "ring_ranks": 3, "entity_dropout": 0.3, **settings}
    )
    return make_model(
        "getd", checked, ModelSizes(N_ENTITIES, 2, [3]), torch.Generator().manual_seed(0)
    )


def facts_of(model: ScoringModel, n: int = 40) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    relation = torch.randint(model.n_relations, (n,), generator=generator)
    return relation, torch.randint(N_ENTITIES, (n, model.arities[0]), generator=generator)


def test_statistics_are_the_means_over_all_batches_and_forget_what_was_before() -> None:
    norm, batches = BatchNorm(2), torch.randn(3, 8, 2, generator=torch.Generator().manual_seed(0))
    norm.train()(torch.full((4, 2), 100.0))  # a moving average of something else
    with taking_statistics(norm, [norm]):
        for batch in batches:
            norm(batch)
    assert_close(norm.running_mean, batches.mean(dim=(0, 1)))
    assert_close(norm.running_var, batches.var(dim=1).mean(dim=0))


def test_a_dimension_that_does_not_vary_is_not_scaled() -> None:
    norm, rows = BatchNorm(3), torch.tensor([[0.1, 0.0, 5.0], [0.1, 0.0, 5.0001]])
    with taking_statistics(norm, [norm]):
        norm(rows)
    assert norm.running_var is not None
    assert norm.running_var[:2].tolist() == [1.0, 1.0]
    assert_close(norm.running_var[2], rows[:, 2].var())


def test_statistics_of_training_are_a_moving_average_again_once_they_were_taken() -> None:
    norm = BatchNorm(2)
    with taking_statistics(norm, [norm]):
        norm(torch.tensor([[0.0, 1.0], [2.0, 3.0]]))
    norm.train()(torch.tensor([[10.0, 10.0], [12.0, 12.0]]))
    assert_close(norm.running_mean, torch.tensor([0.9 * 1 + 0.1 * 11, 0.9 * 2 + 0.1 * 11]))


def test_taking_statistics_leaves_modes_and_random_numbers_as_they_were() -> None:
    model = make().train()
    relation, entities = facts_of(model)
    frozen = batch_norms(model)[0].eval()
    before = torch.get_rng_state()
    with taking_statistics(model, batch_norms(model)):
        assert not model.training
        assert frozen.training
        model.pass_through(relation, entities)
        assert not model.score_candidates(relation, entities, 0).requires_grad
    assert model.training
    assert not frozen.training
    assert torch.equal(torch.get_rng_state(), before)  # nothing was dropped out


@pytest.mark.parametrize("kind", ["batch", "rms"])
def test_one_row_alone_is_normalised_too(kind: str) -> None:
    norm = make_norm(kind, 3)  # type: ignore[arg-type]
    assert norm is not None
    assert norm.train()(torch.tensor([[1.0, 2.0, 3.0]])).isfinite().all()


def test_an_rms_norm_divides_each_vector_by_its_own_scale() -> None:
    norm = make_norm("rms", 2)
    assert norm is not None
    rows = torch.tensor([[3.0, 4.0], [0.3, -0.4], [0.0, 0.0]])
    expected = torch.tensor([[0.6, 0.8], [0.6, -0.8], [0.0, 0.0]]) * 2**0.5
    assert_close(norm.train()(rows), expected, rtol=1e-4, atol=1e-4)
    assert_close(norm.eval()(rows), expected, rtol=1e-4, atol=1e-4)


def test_configs_from_before_there_were_other_norms_mean_what_they_meant() -> None:
    assert model_settings("getd", {"batch_norm": True}).model_dump()["norm"] == "batch"
    assert model_settings("getd", {"batch_norm": False}).model_dump()["norm"] == "none"
    assert model_settings("getd", {"batch_norm": True}).model_dump()["norms_by_position"] is False
    assert model_settings("n-cp", {"batch_norm": True}).model_dump()["norms_by_position"] is True
    kept = model_settings("getd", {"batch_norm": True, "norms_by_position": True}).model_dump()
    assert kept["norms_by_position"] is True


def test_a_norm_that_there_is_not_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^model.norm is one of rms, batch, none, found 'layer'$"
    ):
        model_settings("getd", {"norm": "layer"})


@pytest.mark.parametrize(
    ("regime", "norm", "by_position"),
    [("1vsall", "batch", False), ("kvsall", "batch", True), ("kvsall", "rms", False)],
)
def test_where_a_batch_opens_one_position_each_has_a_batch_norm_of_its_own(
    regime: str, norm: str, by_position: bool
) -> None:
    config = {"model": {"name": "getd", "norm": norm}, "training": {"regime": regime}}
    assert Config.parse(config).tables()["model"]["norms_by_position"] is by_position
    for given in (True, False):
        named = {**config, "model": {**config["model"], "norms_by_position": given}}
        assert Config.parse(named).tables()["model"]["norms_by_position"] is given


def test_norms_by_position_are_one_for_each_position() -> None:
    own = make(norm="batch", norms_by_position=True)
    shared = make(norm="batch")
    assert len(batch_norms(own)) == len(batch_norms(shared)) + 2 * (3 - 1)

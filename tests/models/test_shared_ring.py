"""A ring that all arities share: facts of n entities are scored with its first n + 1 cores."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from getd.algebra.ring import ring_to_tensor
from getd.errors import ShapeError
from getd.models.base import ModelSizes
from getd.models.getd import GETD, GETDSettings

ARITIES = (2, 3, 5)


def shared(**settings: object) -> GETD:
    values = {"entity_dim": 3, "relation_dim": 2, "ring_ranks": 2, "norm": "none"}
    checked = GETDSettings.model_validate({**values, "shared_ring": True, **settings})
    generator = torch.Generator().manual_seed(0)
    return GETD(ModelSizes(7, 4, ARITIES), checked, generator).double().eval()


@pytest.mark.parametrize("arity", ARITIES)
def test_a_fact_is_scored_with_the_tensor_of_as_many_cores_as_it_has_slots(arity: int) -> None:
    model = shared()
    (ring,) = model.rings.values()
    core = ring_to_tensor(list(ring)[: arity + 1])

    generator = torch.Generator().manual_seed(1)
    relation = torch.randint(4, (5,), generator=generator)
    entities = torch.randint(7, (5, arity), generator=generator)
    expected = []
    for r, fact in zip(relation, entities, strict=True):
        rest = torch.tensordot(model.relation.weight[r], core, dims=1)
        for entity in fact[1:].flip(0):
            rest = rest @ model.entity.weight[entity]
        expected.append(model.entity.weight @ rest)
    assert_close(model.score_candidates(relation, entities, 0), torch.stack(expected))


def test_facts_of_one_arity_teach_the_cores_of_the_others() -> None:
    model = shared()
    model.score_candidates(torch.tensor([0]), torch.tensor([[1, 2]]), 1).sum().backward()
    (ring,) = model.rings.values()
    has_gradient = [core.grad is not None and bool(core.grad.any()) for core in ring]
    assert has_gradient == [True, True, True, False, False, False]


def test_one_arity_has_the_ring_it_always_had() -> None:
    sizes = ModelSizes(7, 4, [3])
    alone = GETD(sizes, GETDSettings(), torch.Generator().manual_seed(0))
    same = GETD(sizes, GETDSettings(shared_ring=True), torch.Generator().manual_seed(0))
    for name, value in alone.state_dict().items():
        assert torch.equal(same.state_dict()[name], value)


def test_a_ring_that_closes_at_several_lengths_has_one_rank() -> None:
    message = r"^shared_ring closes rings of every length: ring_ranks is one number$"
    with pytest.raises(ShapeError, match=message):
        shared(ring_ranks=(2, 2, 2, 2, 2, 2))

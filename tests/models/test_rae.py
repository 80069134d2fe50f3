"""m-TransH and RAE: what they can and cannot tell apart, and what relatedness learns."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize
from torch.testing import assert_close

import getd.models.rae
from getd.models.base import ModelSizes
from getd.models.rae import RAE, MTransH, MTransHSettings, RAESettings, _Hidden

N_ENTITIES = 12


def m_transh(arity: int, seed: int = 0, **settings: object) -> MTransH:
    chosen = MTransHSettings(entity_dim=6, initial_scale=1, **settings)
    return MTransH(
        ModelSizes(N_ENTITIES, 3, (arity,)), chosen, torch.Generator().manual_seed(seed)
    ).double()


def rae(arity: int, **settings: object) -> RAE:
    chosen = RAESettings(entity_dim=6, hidden=5, **settings)
    return RAE(
        ModelSizes(N_ENTITIES, 3, (arity,)), chosen, torch.Generator().manual_seed(0)
    ).double()


def score(model: MTransH, fact: Tensor, relation: int = 0) -> Tensor:
    """The score of one fact, its first entity open."""
    return model.score_candidates(
        torch.tensor([relation]), fact.view(1, -1), 0, fact[:1].view(1, 1)
    ).squeeze()


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    ("arity", "i", "j"), [(n, *pair) for n in (2, 3, 4) for pair in permutations(range(n), 2)]
)
def test_three_perfect_facts_make_a_fourth(arity: int, i: int, j: int, p: int) -> None:
    """Where (x, x'), (x, y') and (y, x') have a distance of zero, (y, y') has none left."""
    facts = torch.arange(arity).repeat(4, 1)  # entity 0 .. n - 1, and others at the two positions
    facts[[1, 3], j], facts[[2, 3], i] = arity, arity + 1
    for seed in range(5):
        model = m_transh(arity, seed, p=p)
        with torch.no_grad():
            w, a, e = (
                normalize(model.normal.weight[0], dim=0),
                model.share.weight[0],
                model.entity.weight,
            )
            plane = torch.eye(6, dtype=torch.float64) - torch.outer(w, w)
            model.relation.weight[0] = (
                plane @ model.relation.weight[0]
            )  # else no distance is ever zero
            rest = model.relation.weight[0] + plane @ sum(
                a[k] * e[k] for k in range(arity) if k != i
            )
            e[i] = seed * w - rest / a[i]
            e[arity], e[arity + 1] = (
                e[j] + 2 * w,
                e[i] - 3 * w,
            )  # the one freedom that is left: along the normal
        scores = torch.stack([score(model, fact) for fact in facts])
        assert_close(scores, torch.zeros_like(scores))


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize(("arity", "i", "j"), [(2, 0, 1), (3, 2, 0), (4, 1, 3)])
def test_no_weights_put_a_cycle_above_its_reverse(
    arity: int, i: int, j: int, squared: bool
) -> None:
    """x before y, y before z, z before x: the squared distances of both directions have one sum."""
    one_way, other_way = [], []
    for x, y in ((7, 8), (8, 9), (9, 7)):
        fact = torch.arange(arity)
        one_way.append(fact.index_put((torch.tensor([i, j]),), torch.tensor([x, y])))
        other_way.append(fact.index_put((torch.tensor([i, j]),), torch.tensor([y, x])))
    for seed in range(30):
        model = m_transh(arity, seed, squared=squared)
        distances = [
            torch.stack([-score(model, fact) for fact in facts]) for facts in (one_way, other_way)
        ]
        squares = distances if squared else [d**2 for d in distances]
        assert_close(squares[0].sum(), squares[1].sum())
        assert (distances[0] < distances[1]).any() == (distances[0] > distances[1]).any()


@pytest.mark.parametrize("arity", [1, 2, 4])
def test_rae_without_relatedness_is_m_transh(arity: int) -> None:
    full, plain = rae(arity, relatedness=0), m_transh(arity)
    plain.load_state_dict({name: full.state_dict()[name] for name in plain.state_dict()})
    relation, entities = torch.tensor([2, 0]), torch.arange(2 * arity).view(2, arity)
    for position in range(arity):
        expected = plain.score_candidates(relation, entities, position)
        assert torch.equal(full.score_candidates(relation, entities, position), expected)
    assert torch.equal(full.score_relations(entities), plain.score_relations(entities))


@pytest.mark.parametrize("p", [1, 2])
def test_scores_do_not_depend_on_how_much_is_held_at_a_time(
    p: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, relation, entities = rae(3, p=p), torch.tensor([2, 0, 2]), torch.arange(9).view(3, 3)
    own = torch.arange(12).view(3, 4)

    def scores() -> list[Tensor]:
        scores = [model.score_candidates(relation, entities, 1, ids) for ids in (None, own[0], own)]
        return [*scores, model.score_relations(entities)]

    whole = scores()
    monkeypatch.setattr(getd.models.rae, "BUDGET", 1)
    monkeypatch.setattr(getd.models.rae, "CACHE_BUDGET", 1)
    assert_close(scores(), whole)


def test_the_gradient_made_by_hand_is_that_of_the_formula() -> None:
    generator = torch.Generator().manual_seed(3)
    inputs = [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((4, 5), (5, 7), (5,))
    ]
    one, other, output = inputs
    expected = output @ (one.unsqueeze(2) + other).relu()
    scores = _Hidden.apply(one, other, output)
    assert_close(scores, expected)
    weights = torch.randn(scores.shape, generator=generator, dtype=torch.float64)
    assert_close(
        torch.autograd.grad(scores, inputs, weights), torch.autograd.grad(expected, inputs, weights)
    )


def test_the_auxiliary_loss_tells_entities_of_one_fact_from_others() -> None:
    model, entities, negatives = (
        rae(3, relatedness_loss=0.5),
        torch.tensor([[0, 1, 2]]),
        torch.tensor([[7, 8]]),
    )
    loss = model.auxiliary_loss(torch.tensor([0]), entities, negatives)
    together = [
        model.relatedness(entities[:, [i]], entities[:, [j]]) for i, j in permutations(range(3), 2)
    ]
    apart = [
        model.relatedness(entities[:, [i]], negatives[:, [k]]) for i in range(3) for k in range(2)
    ]
    expected = -logsigmoid(torch.stack(together)).mean() - logsigmoid(-torch.stack(apart)).mean()
    assert loss is not None
    assert_close(loss, 0.5 * expected)


def test_the_auxiliary_loss_teaches_the_network_and_the_entities() -> None:
    model, entities, negatives = (
        rae(2, relatedness_loss=1),
        torch.tensor([[0, 1], [2, 3]]),
        torch.tensor([[2], [0]]),
    )
    before = model.relatedness(entities[:, :1], entities[:, 1:]).detach()
    for _ in range(50):
        loss = model.auxiliary_loss(torch.tensor([0, 1]), entities, negatives)
        assert loss is not None
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    parameter -= 0.1 * parameter.grad.to_dense()
                else:
                    assert name in ("relation.weight", "normal.weight", "share.weight")
    assert (model.relatedness(entities[:, :1], entities[:, 1:]) > before).all()


def test_there_is_no_auxiliary_loss_where_nothing_is_to_be_told() -> None:
    one, facts = torch.tensor([0]), torch.tensor([[0, 1]])
    assert rae(1).auxiliary_loss(one, facts[:, :1], facts) is None
    assert rae(2, relatedness_loss=0).auxiliary_loss(one, facts, facts) is None
    assert m_transh(2).auxiliary_loss(one, facts, facts) is None

"""The models that PyKEEN has too give its scores for its weights."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from torch import nn
from torch.testing import assert_close

if find_spec("pykeen") is None:
    pytest.skip("it needs pykeen; pip install 'getd[bench]'", allow_module_level=True)

N_ENTITIES, N_RELATIONS = 11, 4
FORMS = [
    (name, turned)
    for name in ("tucker", "complex", "distmult", "conve", "transe")
    for turned in (False, True)
]
FORMS.remove(("conve", False))  # which always has a relation for each direction
FORMS.remove(("transe", True))  # which never has


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    os.environ.setdefault("PYSTOW_HOME", str(tmp_path_factory.mktemp("pystow")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages
        return import_module("benchmarks.pykeen_models")


def make_as_if_trained(model: nn.Module) -> None:
    """Give biases and batch norms numbers other than those of the start."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2, generator=generator)
            elif (
                tensor.is_floating_point()
                and tensor.abs().sum() in (0, tensor.numel())
                and "." in name
            ):
                tensor.normal_(generator=generator)


@pytest.mark.parametrize(("name", "reciprocal"), FORMS)
def test_scores_are_those_of_pykeen(pairs: ModuleType, name: str, reciprocal: bool) -> None:
    ours, theirs = pairs.make_pair(
        name,
        12,
        N_ENTITIES,
        N_RELATIONS,
        relation_dim=5,
        reciprocal=reciprocal,
        dtype=torch.float64,
    )
    generator = torch.Generator().manual_seed(1)
    relation = torch.randint(N_RELATIONS, (9,), generator=generator)
    entities = torch.randint(N_ENTITIES, (9, 2), generator=generator)
    head, tail = entities.unbind(1)
    make_as_if_trained(theirs)
    pairs.copy_weights(name, theirs, ours)
    ours.eval()
    theirs.eval()
    with torch.no_grad():
        if reciprocal:
            tails = theirs.score_t(torch.stack([head, 2 * relation], dim=1))
            heads = theirs.score_t(torch.stack([tail, 2 * relation + 1], dim=1))
        else:
            tails = theirs.score_t(torch.stack([head, relation], dim=1))
            heads = theirs.score_h(torch.stack([relation, tail], dim=1))
        assert_close(ours.score_candidates(relation, entities, 1), tails, rtol=1e-9, atol=1e-12)
        assert_close(ours.score_candidates(relation, entities, 0), heads, rtol=1e-9, atol=1e-12)


def test_conve_learns_as_that_of_pykeen(pairs: ModuleType) -> None:
    """Without dropout a step has its scores, its gradients and its statistics of batch norm."""
    ours, theirs = pairs.make_pair("conve", 12, N_ENTITIES, N_RELATIONS, dtype=torch.float64)
    for module in theirs.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d):
            module.p = 0.0
    ours.inner.input_dropout.dropout = ours.inner.query_dropout.dropout = (
        ours.inner.feature_dropout
    ) = 0.0
    make_as_if_trained(theirs)
    pairs.copy_weights("conve", theirs, ours)
    generator = torch.Generator().manual_seed(3)
    relation = torch.randint(N_RELATIONS, (9,), generator=generator)
    entities = torch.randint(N_ENTITIES, (9, 2), generator=generator)
    scores = ours.score_candidates(relation, entities, 1)
    expected = theirs.score_t(torch.stack([entities[:, 0], 2 * relation], dim=1))
    assert_close(scores, expected, rtol=1e-8, atol=1e-10)

    weights = torch.randn(scores.shape, dtype=torch.float64, generator=generator)
    (scores * weights).sum().backward()
    (expected * weights).sum().backward()
    model, images, rows = ours.inner, theirs.interaction.hr2d, theirs.interaction.hr1d
    vectors, biases = (table._embeddings.weight.grad for table in theirs.entity_representations)
    same = [
        (model.entity.weight.grad, torch.cat([vectors, biases], dim=1)),
        (model.filters.grad, images[2].weight.grad.flatten(1).T),
        (model.map_norm.weight.grad, images[3].weight.grad),
        (model.shift.grad, rows[0].bias.grad),
        (model.input_norm.running_var, images[0].running_var),
        (model.map_norm.running_mean, images[3].running_mean - images[2].bias.detach()),
        (model.map_norm.running_var, images[3].running_var),
        (model.query_norm.norm.running_mean, rows[2].running_mean),
    ]
    for ours, theirs in same:
        assert_close(ours, theirs, rtol=1e-7, atol=1e-9)

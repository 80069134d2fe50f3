"""Weights with which a model's scores are any ground truth, from one term for each fact."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from hypothesis import given, settings
from torch import Tensor

from getd.algebra.expressiveness import exact_cp, exact_getd, exact_tucker
from getd.models.base import ModelSizes, ScoringModel
from getd.models.registry import MODELS, make_model, model_settings
from tests.algebra.test_expressiveness import every_fact, ground_truths


def check(name: str, truth: Tensor, weights: dict[str, Tensor], **chosen: object) -> None:
    """A model with these weights scores every fact as the truth has it, at every position."""
    n_relations, n_entities, arity = truth.shape[0], truth.shape[1], truth.dim() - 1
    checked = model_settings(name, {"norm": "none", **chosen})
    model: ScoringModel = make_model(
        name, checked, ModelSizes(n_entities, n_relations, (arity,))
    ).eval()
    model.load_state_dict(weights, strict=False)
    assert set(weights) == set(model.state_dict())
    relation, entities = every_fact(truth.shape)[:, 0], every_fact(truth.shape)[:, 1:]
    for position in range(arity):
        scores = model.score_candidates(relation, entities, position)
        assert torch.equal(
            scores.gather(1, entities[:, [position]]).view(truth.shape), truth.float()
        )
    assert torch.equal(
        model.score_relations(entities).gather(1, relation[:, None]).view(truth.shape),
        truth.float(),
    )


def blocks(factors: list[Tensor]) -> tuple[Tensor, Tensor]:
    """One table with the vectors of all positions side by side, and the relations with zeros."""
    relation, *positions = factors
    zeros = torch.zeros(len(relation), relation.shape[1] * (len(positions) - 1))
    return torch.cat([relation, zeros], dim=1), torch.cat(positions, dim=1)


@settings(max_examples=30)
@given(ground_truths())
def test_n_cp_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    relation, *positions = exact_cp(truth)
    tables = {f"entity.{j}.weight": table for j, table in enumerate(positions)}
    check("n-cp", truth, {"relation.weight": relation, **tables}, entity_dim=relation.shape[1])


@settings(max_examples=30)
@given(ground_truths())
def test_n_tucker_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    core, (relation, entity, *_) = exact_tucker(truth)
    weights = {
        "relation.weight": relation,
        "entity.weight": entity,
        f"cores.{truth.dim() - 1}": core,
    }
    check("n-tucker", truth, weights, entity_dim=entity.shape[1], relation_dim=relation.shape[1])


@settings(max_examples=30)
@given(ground_truths())
def test_getd_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    relation, entity, cores = exact_getd(truth)
    rings = {f"rings.{truth.dim() - 1}.{i}": core for i, core in enumerate(cores)}
    weights = {"relation.weight": relation, "entity.weight": entity, **rings}
    sizes = {"entity_dim": entity.shape[1], "relation_dim": relation.shape[1]}
    check("getd", truth, weights, **sizes, ring_ranks=cores[0].shape[0])


@settings(max_examples=30)
@given(ground_truths())
def test_simple_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    """Position ``j`` reads from the ``j``-th of ``n`` equal blocks on, the relation the first."""
    relation, entity = blocks(exact_cp(truth))
    check(
        "simple",
        truth,
        {"relation.weight": relation, "entity.weight": entity},
        entity_dim=entity.shape[1],
    )


@settings(max_examples=30)
@given(ground_truths())
def test_hype_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    """Filters as wide as a vector: that of position ``j`` picks number ``f`` of block ``j``."""
    factors = exact_cp(truth)
    relation, entity = blocks(factors)
    terms, n, d = factors[0].shape[1], truth.dim() - 1, entity.shape[1]
    filters = torch.eye(d).view(n, terms, d)
    projection = torch.eye(terms, d).view(terms, 1, d)
    weights = {
        "relation.weight": relation,
        "entity.weight": entity,
        "filters": filters,
        "projection": projection,
    }
    check("hype", truth, weights, entity_dim=d, filters=terms, filter_width=d)


@settings(max_examples=30)
@given(ground_truths().filter(lambda truth: truth.dim() == 3))
def test_complex_scores_any_ground_truth_exactly(truth: Tensor) -> None:
    """Three dimensions for each term ``u a(h) b(t)``: half antisymmetric, half symmetric.

    With ``e = a + i b`` and ``r = i u / 2`` comes ``u (a(h) b(t) − b(h) a(t)) / 2``; with the real
    ``e = a ± b`` and ``r = ± u / 4`` comes the rest.
    """
    u, a, b = exact_cp(truth)
    zero = torch.zeros_like(u)
    relation = torch.cat(
        [zero, u / 4, -u / 4, u / 2, zero, zero], dim=1
    )  # real parts, then imaginary
    entity = torch.cat([a, a + b, a - b, b, torch.zeros_like(a), torch.zeros_like(a)], dim=1)
    weights = {"relation.weight": relation, "entity.weight": entity}
    check("complex", truth, weights, entity_dim=3 * u.shape[1])


def test_the_registry_says_of_n_ary_models_what_the_documentation_says_is_tested() -> None:
    page = Path(__file__).parents[2] / "docs" / "maths.md"
    rows = re.findall(
        r"^\| (.+?) \| (yes|no|not known) \| (.+) \|$", page.read_text("utf-8"), re.MULTILINE
    )
    documented: dict[str, bool | None] = {}
    for titles, answer, why in rows:
        for title in titles.split(", "):
            documented[title] = answer == "yes" if "`tests/" in why else None

    for entry in MODELS.values():
        if not entry.model.binary_only:
            assert entry.fully_expressive == documented[entry.title], entry.title

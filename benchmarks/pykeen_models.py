"""The same model twice, ours and PyKEEN's, with the same weights, for tests and benchmarks.

PyKEEN writes into a folder of its own when it is imported: set ``PYSTOW_HOME`` where the home
folder is read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from pykeen.models import ComplEx as TheirComplEx
from pykeen.models import ConvE as TheirConvE
from pykeen.models import DistMult as TheirDistMult
from pykeen.models import ERModel
from pykeen.models import TransE as TheirTransE
from pykeen.models import TuckER as TheirTuckER
from pykeen.triples import CoreTriplesFactory
from torch import Tensor, nn

from getd.models.base import ModelSizes, ScoringModel
from getd.models.reciprocal import Reciprocal
from getd.models.registry import make_model, model_settings

Weights = dict[str, Tensor]


def make_pair(
    name: str,
    dim: int,
    n_entities: int,
    n_relations: int,
    *,
    relation_dim: int | None = None,
    reciprocal: bool = False,
    triples: Tensor | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> tuple[ScoringModel, ERModel]:
    """Our model and PyKEEN's, with PyKEEN's random weights in both, in training mode.

    ``name`` is one of ``tucker``, ``complex``, ``distmult``, ``conve`` and ``transe``. With
    ``reciprocal`` both have relations of their own for each direction (ConvE always has): PyKEEN
    then numbers them ``2 r`` and ``2 r + 1``, and its factory makes inverse triples. Tucker has
    neither batch norm nor dropout, as the two put them in other places; ConvE has both, alike. What
    else PyKEEN adds by default, regularisers and scaling all entities after each step, is off.
    ``triples`` ``(m, 3)``, head, relation, tail, are those of PyKEEN's factory.
    """
    reciprocal = reciprocal or name == "conve"
    facts = torch.tensor([[0, 0, 0]]) if triples is None else triples
    factory = CoreTriplesFactory(
        facts, num_entities=n_entities, num_relations=n_relations, create_inverse_triples=reciprocal
    )
    settings: dict[str, object] = {"entity_dim": dim}
    if name == "tucker":
        settings |= {"relation_dim": relation_dim or dim, "norm": "none"}
    if name != "transe":
        settings |= {"reciprocal": reciprocal}
    theirs = _MODELS[name][0](factory, dim, relation_dim or dim, seed).to(dtype)
    ours = make_model(
        name, model_settings(name, settings), ModelSizes(n_entities, n_relations, (2,))
    ).to(dtype)
    copy_weights(name, theirs, ours)
    return ours.train(), theirs.train()


def copy_weights(name: str, theirs: ERModel, ours: ScoringModel) -> None:
    """Give our model the weights, and the statistics of batch norm, that PyKEEN's has."""
    turned = isinstance(ours, Reciprocal)
    weights = _MODELS[name][1](theirs, turned)
    # Ours: first those that ask for the first entity, PyKEEN's inverses, then those for the second.
    if turned:
        rows = weights["relation.weight"]
        weights["relation.weight"] = torch.cat([rows[1::2], rows[0::2]])
    (ours.inner if isinstance(ours, Reciprocal) else ours).load_state_dict(weights)


def _vectors(model: ERModel) -> Weights:
    entity, relation = model.entity_representations[0](), model.relation_representations[0]()
    return {"entity.weight": entity.detach(), "relation.weight": relation.detach()}


def _plain(theirs: ERModel, reciprocal: bool) -> Weights:
    return _vectors(theirs)


def _complex(theirs: ERModel, reciprocal: bool) -> Weights:
    """Conjugate the relation: ours asks for the first entity, PyKEEN's inverse for the second."""
    weights = _vectors(theirs)
    if reciprocal:
        weights["relation.weight"] = weights["relation.weight"].conj().resolve_conj()
    return {name: torch.cat([table.real, table.imag], dim=1) for name, table in weights.items()}


def _tucker(theirs: ERModel, reciprocal: bool) -> Weights:
    core = (
        theirs.interaction.core_tensor.detach()
    )  # head, relation, tail; what is given stands first with inverses
    return {
        **_vectors(theirs),
        "cores.2": core.permute(1, 2, 0) if reciprocal else core.permute(1, 0, 2),
    }


def _conve(theirs: ERModel, reciprocal: bool) -> Weights:
    images, rows = theirs.interaction.hr2d, theirs.interaction.hr1d
    input_norm, _, convolution, map_norm, *_ = images
    linear, _, query_norm, _ = rows
    weights = _vectors(theirs)
    bias = theirs.entity_representations[1]().detach().view(-1, 1)
    channels, dim = convolution.out_channels, linear.out_features
    projection = (
        linear.weight.detach().view(dim, channels, -1).permute(2, 1, 0).flatten(0, 1)
    )  # places, then channels
    maps = _norm("map_norm", map_norm)
    maps["map_norm.running_mean"] = (
        maps["map_norm.running_mean"] - convolution.bias.detach()
    )  # we have no such bias
    return {
        "entity.weight": torch.cat([weights["entity.weight"], bias], dim=1),
        "relation.weight": weights["relation.weight"],
        "filters": convolution.weight.detach().flatten(1).T,
        "projection": projection,
        "shift": linear.bias.detach(),
        **_norm("input_norm", input_norm),
        **maps,
        **_norm("query_norm.norm", query_norm),
    }


def _norm(name: str, norm: nn.Module) -> Weights:
    return {f"{name}.{key}": value.detach() for key, value in norm.state_dict().items()}


def _their_tucker(factory: CoreTriplesFactory, dim: int, relation_dim: int, seed: int) -> ERModel:
    dropouts = {"dropout_0": 0.0, "dropout_1": 0.0, "dropout_2": 0.0}
    return TheirTuckER(
        triples_factory=factory,
        embedding_dim=dim,
        relation_dim=relation_dim,
        apply_batch_normalization=False,
        random_seed=seed,
        **dropouts,
    )


def _their_conve(factory: CoreTriplesFactory, dim: int, relation_dim: int, seed: int) -> ERModel:
    height, width = make_model(
        "conve", model_settings("conve", {"entity_dim": dim}), ModelSizes(1, 1, (2,))
    ).inner.image
    return TheirConvE(
        triples_factory=factory,
        embedding_dim=dim,
        embedding_height=height // 2,
        embedding_width=width,
        random_seed=seed,
    )


def _their_plain(
    make: type[ERModel], **more: object
) -> Callable[[CoreTriplesFactory, int, int, int], ERModel]:
    def build(factory: CoreTriplesFactory, dim: int, relation_dim: int, seed: int) -> ERModel:
        return make(triples_factory=factory, embedding_dim=dim, random_seed=seed, **more)

    return build


_MODELS: Mapping[str, tuple[Callable[..., ERModel], Callable[[ERModel, bool], Weights]]] = {
    "tucker": (_their_tucker, _tucker),
    "complex": (_their_plain(TheirComplEx, regularizer=None), _complex),
    "distmult": (_their_plain(TheirDistMult, regularizer=None, entity_constrainer=None), _plain),
    "conve": (_their_conve, _conve),
    "transe": (_their_plain(TheirTransE, scoring_fct_norm=1, entity_constrainer=None), _plain),
}
NAMES = tuple(_MODELS)

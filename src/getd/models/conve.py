r"""ConvE: a small convolutional network makes the query; for facts of two entities.

.. math::
    \phi(r, ?, e) = \bigl\langle \operatorname{relu}\bigl( \operatorname{vec}(\operatorname{relu}(
    [\bar e ; \bar r] * \omega)) \, W \bigr), \; ? \bigr\rangle + b_?

:math:`\bar e` and :math:`\bar r` are the vectors written row by row as images, one above the other,
and ω are filters. Batch norm acts on the image, on the feature maps and on the query, dropout after
the first two and before the third. The bias of a candidate is the last number of its row, and each
query ends with a one, so the score is a dot product.

A query asks for the first entity alone; :class:`~getd.models.reciprocal.Reciprocal` turns every
question into that.
"""

from itertools import product
from math import isqrt, prod
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import Parameter
from torch.nn.functional import pad

from getd.errors import ShapeError
from getd.models.aliases import Factors, RandomSource
from getd.models.base import DotProductModel, ModelSizes
from getd.models.layers import NormDropout, embedding
from getd.models.norms import BatchNorm
from getd.models.settings import Dropout, ModelSettings


class ConvESettings(ModelSettings):
    """Settings of ``[model]`` with ``name = "conve"``."""

    entity_dim: PositiveInt = 200
    # Of the image of one vector; None: as square as possible, and wide.
    embedding_height: PositiveInt | None = None
    embedding_width: PositiveInt | None = None
    channels: PositiveInt = 32
    kernel: PositiveInt = 3
    batch_norm: bool = True
    input_dropout: Dropout = 0.2  # on the image
    feature_dropout: Dropout = 0.2  # on whole feature maps
    query_dropout: Dropout = 0.3
    reciprocal: Literal[True] = True  # only the first position has a query


class ConvE(DotProductModel):
    """A convolutional network over the images of entity and relation; facts of two entities."""

    binary_only = True
    relation_is_dot_product = False
    parameters_formula = "|E|(d + 1) + 2|R|d + c k^2 + c (2h - k + 1)(w - k + 1) d + d"

    def __init__(
        self, sizes: ModelSizes, settings: ConvESettings, generator: RandomSource = None
    ) -> None:
        super().__init__(sizes)
        d = settings.entity_dim
        scale = settings.initial_scale
        self.entity = embedding(sizes.n_entities, d + 1, scale, generator, sparse=True)
        with torch.no_grad():
            self.entity.weight[:, -1] = 0  # the bias
        self.relation = embedding(sizes.n_relations, d, scale, generator)

        # The image of a question, and its feature maps; batch norm would take their offset off.
        c = settings.channels
        k = settings.kernel
        has_norm = settings.batch_norm
        height, width = image_shape(settings)
        self.kernel = k
        self.image = (2 * height, width)
        self.maps = (2 * height - k + 1, width - k + 1)
        self.filters = Parameter(torch.randn(k * k, c, generator=generator) / k)
        self.offset = None if has_norm else Parameter(torch.zeros(c))

        features = prod(self.maps) * c  # from all of them to the query
        projection = torch.randn(features, d, generator=generator)
        self.projection = Parameter(projection / features**0.5)
        self.shift = Parameter(torch.zeros(d))

        self.input_norm = BatchNorm(1) if has_norm else None
        self.input_dropout = NormDropout(2 * d, "none", settings.input_dropout)
        self.map_norm = BatchNorm(c) if has_norm else None
        self.feature_dropout = settings.feature_dropout
        self.query_dropout = NormDropout(d, "none", settings.query_dropout)
        self.query_norm = NormDropout(d, "batch" if has_norm else "none", 0)

    def query(self, relation: Tensor, entities: Tensor, position: int) -> Tensor:
        self.check_arity(entities)
        if position != 0:
            raise ValueError(
                f"ConvE makes a query for position 0 alone, found {position}: wrap it in Reciprocal"
            )
        # Variances are differences of products, which are not rounded here.
        with torch.autocast(entities.device.type, enabled=False):
            return self._query(relation, entities)

    def _query(self, relation: Tensor, entities: Tensor) -> Tensor:
        e = self.entity(entities[:, 1])[:, :-1]
        rows = torch.cat([e, self.relation(relation)], dim=1)  # (b, 2 d)
        if self.input_norm is not None:
            rows = self.input_norm(rows.unsqueeze(1)).squeeze(1)
        images = self.input_dropout(rows).view(-1, *self.image)

        patches = self._patches(images)  # (k² + 1, b h w)
        filters = self._filters(patches)
        maps: Tensor = FeatureMaps.apply(patches, filters, self._kept(rows))  # type: ignore[no-untyped-call]
        q = torch.addmm(self.shift, maps.view(len(rows), -1), self.projection)  # (b, d)
        q = self.query_norm(self.query_dropout(q)).relu()
        return pad(q, (0, 1), value=1.0)  # (b, d + 1)

    def factors(self, relation: Tensor, entities: Tensor) -> Factors:
        return [self.relation(relation), *self.entity(entities)[:, :, :-1].unbind(1)]

    def _patches(self, images: Tensor) -> Tensor:
        """Return what lies under the filters, a column per window of each image; ones below."""
        height, width = self.maps
        k = self.kernel
        rows = []
        for i, j in product(range(k), repeat=2):
            rows.append(images[:, i : i + height, j : j + width])
        rows.append(torch.ones_like(rows[0]))
        return torch.stack(rows).view(k * k + 1, -1)

    def _filters(self, patches: Tensor) -> Tensor:
        """Return the filters ``(k², c)`` and below them their offsets, with batch norm folded in.

        A map is linear in the patches, so its mean and variance follow from theirs: no map is read
        to normalise it.
        """
        norm = self.map_norm
        filters = self.filters
        if norm is None:
            assert self.offset is not None
            return torch.cat([filters, self.offset.unsqueeze(0)])

        mean = norm.running_mean
        variance = norm.running_var
        if norm.training:
            count = patches.shape[1]
            moments = patches @ patches.T / count
            means = moments[-1, :-1]
            covariance = moments[:-1, :-1] - means.outer(means)
            mean = means @ filters
            variance = ((covariance @ filters) * filters).sum(dim=0)
            norm.keep(mean, variance * (count / max(count - 1, 1)))

        scale = norm.weight * (variance + norm.eps).rsqrt()
        offset = norm.bias - mean * scale
        return torch.cat([filters * scale, offset.unsqueeze(0)])

    def _kept(self, rows: Tensor) -> Tensor | None:
        """Return the factor of each feature map, ``(b, 1, c)``: 0 where it is dropped."""
        share = self.feature_dropout
        if not (self.training and share):
            return None
        channels = self.filters.shape[1]
        chance = torch.rand(len(rows), 1, channels, dtype=rows.dtype, device=rows.device)
        return (chance >= share) / (1 - share)


class FeatureMaps(Function):
    """``relu(patchesᵀ filters)`` without the maps that are dropped, ``(b h w, c)``.

    Computed in place, as this is the largest tensor by far.
    """

    @staticmethod
    def forward(ctx: Any, patches: Tensor, filters: Tensor, kept: Tensor | None) -> Tensor:
        maps = (patches.T @ filters).clamp_min_(0)
        if kept is not None:
            maps.view(len(kept), -1, kept.shape[2]).mul_(kept)
        ctx.save_for_backward(patches, filters, kept, maps)
        return maps

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        patches, filters, kept, maps = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward(grad, maps, 0)
        if kept is not None:
            grad.view(len(kept), -1, kept.shape[2]).mul_(kept)
        return filters @ grad.T, patches @ grad, None


def image_shape(settings: ConvESettings) -> tuple[int, int]:
    """Return the height and width of the image of one vector; by default as square as can be.

    >>> image_shape(ConvESettings()), image_shape(ConvESettings(entity_dim=12, embedding_width=3))
    ((10, 20), (4, 3))
    """
    d = settings.entity_dim
    height = settings.embedding_height
    width = settings.embedding_width
    if height is None:
        height = d // width if width else next(h for h in range(isqrt(d), 0, -1) if d % h == 0)
    width = width or d // height
    if height * width != d:
        raise ShapeError(f"an image of {height} × {width} does not hold entity_dim = {d} numbers")

    k = settings.kernel
    if 2 * height < k or width < k:
        raise ShapeError(
            f"two images of {height} × {width}, one above the other, "
            f"are smaller than the kernel of {k} × {k}; "
            "choose another entity_dim, embedding_height or kernel"
        )
    return height, width

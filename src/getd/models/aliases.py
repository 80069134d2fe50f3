"""Names of the types that models take and return."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

RandomSource = torch.Generator | None  # None: that of torch
RelationIds = Tensor | None  # None: the relation is open
Candidates = Tensor | None  # ids of entities; None: all entities
Shared = Tensor | None  # of all questions; None: each has its own alone
ExtraLoss = Tensor | None  # None: the model has no other
OwnAndShared = tuple[Tensor, Shared]
Positions = Sequence[int]
Factors = list[Tensor]
Tables = dict[str, nn.Embedding]  # by module name

"""Names of the types that models take and return."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

RandomSource = torch.Generator | None  # None: that of torch
Candidates = Tensor | None  # ids of entities; None: all entities
Shared = Tensor | None  # of all questions; None: each has its own alone
OwnAndShared = tuple[Tensor, Shared]
Positions = Sequence[int]
Factors = list[Tensor]
Tables = dict[str, nn.Embedding]  # by module name

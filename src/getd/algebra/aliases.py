"""Names of the types that the algebra takes and returns."""

from collections.abc import Sequence

from torch import Tensor

Sizes = tuple[int, ...]
Ranks = int | Sequence[int]  # of all bonds of a ring, or of each
Cores = Sequence[Tensor]  # of a ring: (R_j, d_j, R_{j+1})
Modes = Sequence[int]
Vectors = Sequence[Tensor | None]  # one per mode; None where it is not read
ByMode = dict[int, Tensor]
Tensors = list[Tensor]  # one per mode
Environments = list[Tensor]  # one per chosen mode

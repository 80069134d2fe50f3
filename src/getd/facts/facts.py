"""Facts as integers, a rectangular block per arity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Blocks = Mapping[int, "Facts"]


@dataclass(frozen=True, eq=False)
class Facts:
    """``n`` facts of one arity: ``relation[i]`` holds between ``entities[i, 0], …, entities[i, arity - 1]``.

    Both arrays are read-only.
    """

    relation: Ids  # (n,)
    entities: Ids  # (n, arity)

    def __post_init__(self) -> None:
        for name in ("relation", "entities"):
            view = np.ascontiguousarray(getattr(self, name), dtype=np.int64).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        if self.entities.ndim != 2 or self.relation.shape != self.entities.shape[:1]:
            raise ValueError(
                f"relation {self.relation.shape} and entities {self.entities.shape} do not fit together"
            )

    def __len__(self) -> int:
        return len(self.relation)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Facts)
            and np.array_equal(self.relation, other.relation)
            and np.array_equal(self.entities, other.entities)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def arity(self) -> int:
        return int(self.entities.shape[1])

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Facts:
        """Some of the facts."""
        return Facts(self.relation[rows], self.entities[rows])

    def rows(self) -> Ids:
        """Relation and entities side by side, ``(n, 1 + arity)``."""
        return np.column_stack([self.relation, self.entities])


def join(*splits: Blocks) -> dict[int, Facts]:
    """The facts of all these splits together, one split after the other."""
    parts: dict[int, list[Facts]] = {}
    for blocks in splits:
        for arity, facts in blocks.items():
            parts.setdefault(arity, []).append(facts)
    return {
        arity: Facts(
            np.concatenate([facts.relation for facts in parts[arity]]),
            np.concatenate([facts.entities for facts in parts[arity]]),
        )
        for arity in sorted(parts)
    }


def count(blocks: Blocks) -> int:
    """How many facts there are over all arities."""
    return sum(len(facts) for facts in blocks.values())

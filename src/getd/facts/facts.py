"""Facts as integers, a rectangular block per arity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from getd.arrays import Bools, Ids, mark
from getd.errors import ConfigError

if TYPE_CHECKING:
    import torch

Blocks = Mapping[int, "Facts"]  # by arity


@dataclass(frozen=True, eq=False)
class Facts:
    """``n`` facts of one arity: ``relation[i]`` holds between ``entities[i]``, in this order.

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
            shapes = f"relation {self.relation.shape} and entities {self.entities.shape}"
            raise ValueError(f"{shapes} do not fit together")

    def __len__(self) -> int:
        return len(self.relation)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Facts)
            and np.array_equal(self.relation, other.relation)
            and np.array_equal(self.entities, other.entities)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Facts, (self.relation, self.entities)  # read-only again when unpickled

    @property
    def arity(self) -> int:
        """The number of entities of each fact."""
        return int(self.entities.shape[1])

    def take(self, rows: Ids | Bools | slice) -> Facts:
        """Select facts by row numbers, by a mask or by a slice."""
        return Facts(self.relation[rows], self.entities[rows])

    def columns(self) -> list[Ids]:
        """The relation and the entities of each position, each ``(n,)``, without copying."""
        return [self.relation, *self.entities.T]

    def rows(self) -> Ids:
        """Relation and entities side by side, ``(n, 1 + arity)``."""
        return np.column_stack([self.relation, self.entities])

    def to_tensors(
        self, device: torch.device | str | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Relation ``(n,)`` and entities ``(n, arity)`` as tensors: copies, on a device."""
        import torch

        relation = torch.tensor(self.relation, device=device)
        return relation, torch.tensor(self.entities, device=device)


def join(*splits: Blocks) -> dict[int, Facts]:
    """Join the facts of several splits, one split after the other."""
    joined = {}
    for arity in sorted(set().union(*splits)):
        parts = [blocks[arity] for blocks in splits if arity in blocks]
        relation = np.concatenate([facts.relation for facts in parts])
        entities = np.concatenate([facts.entities for facts in parts])
        joined[arity] = Facts(relation, entities)
    return joined


def count(blocks: Blocks) -> int:
    """Count the facts of all arities."""
    return sum(len(facts) for facts in blocks.values())


def sample_facts(blocks: Blocks, number: int | None, seed: int = 0) -> dict[int, Facts]:
    """Draw facts at random without replacement, kept in order; all if there are no more."""
    if number is not None and number < 1:
        raise ConfigError(f"sample: expected at least 1 fact, found {number}")

    kept = {arity: facts for arity, facts in sorted(blocks.items()) if len(facts)}
    total = count(kept)
    if number is None or number >= total:
        return kept

    order = np.random.default_rng(seed).permutation(total)
    drawn = mark(total, [order[:number]])

    sample = {}
    start = 0
    for arity, facts in kept.items():
        mask = drawn[start : start + len(facts)]
        start += len(facts)
        if mask.any():
            sample[arity] = facts.take(mask)
    return sample

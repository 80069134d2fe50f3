"""The queries of a batch from the ring, against its core multiplied out: by arity, rank, order.

Forward only, all modes of the entities. *Multiplied out* builds the core for the batch (two halves
of the ring, one matrix product between them) and contracts it with ``tucker_environments``; both
give the same queries, which is asserted. *By order* takes rings of several shapes that all stand
for one core of 25^5 numbers (4-ary).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.harness import Figure, Plot, Result, Series, best
from getd.algebra.reshape import reshaped_environments
from getd.algebra.ring import ring_to_tensor
from getd.algebra.tucker import tucker_environments

KINDS = ("ring", "multiplied out")
Times = tuple[float, float]


@dataclass(frozen=True)
class Sizes:
    """What is varied, and what stays; ``d`` and ``R`` are equal where the arity is varied."""

    arities: tuple[int, ...] = (2, 3, 4, 5, 6)
    arity_dim: int = 12
    ranks: tuple[int, ...] = (5, 10, 20, 40, 80)
    rank_dim: int = 25
    orders: tuple[tuple[int, ...], ...] = (
        (25,) * 5,
        (5, 5, 25, 25, 25, 25),
        (5, 25, 25, 25, 25, 5),
        (5,) * 10,
    )
    order_dims: tuple[int, ...] = (25,) * 5
    order_rank: int = 10
    batch: int = 128
    repeats: int = 5


QUICK = Sizes((2, 3), 3, (2, 3), 4, ((4,) * 3, (2, 4, 4, 2)), (4,) * 3, 2, 4, 1)


def measure(quick: bool = False) -> Result:
    """All three comparisons."""
    sizes = QUICK if quick else Sizes()
    batch, repeats, d = sizes.batch, sizes.repeats, sizes.arity_dim
    by_arity = [_times((d,) * (n + 1), (d,) * (n + 1), d, batch, repeats) for n in sizes.arities]
    cube = (sizes.rank_dim,) * 4
    by_rank = [_times(cube, cube, rank, batch, repeats) for rank in sizes.ranks]
    by_order = [
        _times(shape, sizes.order_dims, sizes.order_rank, batch, repeats) for shape in sizes.orders
    ]
    labels = [f"k = {len(shape)}\n{_spelt(shape)}" for shape in sizes.orders]
    figures = [
        Figure(f"multiplied out over the ring, arity {n}, d = R = {d}", built / ring, "x")
        for n, (ring, built) in zip(sizes.arities, by_arity, strict=True)
    ]
    figures += [
        Figure(
            f"multiplied out over the ring, {_spelt(shape)}, R = {sizes.order_rank}",
            built / ring,
            "x",
        )
        for shape, (ring, built) in zip(sizes.orders, by_order, strict=True)
    ]
    return Result(
        name="ring",
        figures=figures,
        plots=[
            Plot(
                f"queries by arity (d = R = {d})",
                "arity",
                "seconds",
                _series(sizes.arities, by_arity),
            ),
            Plot(
                f"queries by rank (3-ary, d = {sizes.rank_dim})",
                "rank",
                "seconds",
                _series(sizes.ranks, by_rank),
            ),
            Plot(
                f"queries by order of the ring ({len(sizes.order_dims) - 1}-ary, "
                f"R = {sizes.order_rank})",
                "",
                "seconds",
                _series(range(len(labels)), by_order),
                log=False,
                x_ticks=labels,
            ),
        ],
        details={
            "seconds": {
                "by arity": _named(map(str, sizes.arities), by_arity),
                "by rank": _named(map(str, sizes.ranks), by_rank),
                "by order": _named(map(_spelt, sizes.orders), by_order),
            },
            "batch": batch,
            "threads": torch.get_num_threads(),
        },
        packages=("getd", "torch"),
    )


@torch.no_grad()
def _times(
    ring_shape: Sequence[int], dims: Sequence[int], rank: int, batch: int, repeats: int
) -> Times:
    """Seconds of both ways, taking turns, after both were found to agree."""
    generator = torch.Generator().manual_seed(0)
    cores = [
        torch.randn(rank, size, rank, generator=generator) / (size * rank) ** 0.5
        for size in ring_shape
    ]
    vectors = [torch.randn(batch, dim, generator=generator) for dim in dims]
    modes = range(1, len(dims))

    def ring() -> list[torch.Tensor]:
        return reshaped_environments(cores, dims, vectors, modes)

    def built() -> list[torch.Tensor]:
        return tucker_environments(ring_to_tensor(cores).reshape(*dims), vectors, modes)

    for mine, other in zip(ring(), built(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
    ring_time, built_time = best(ring, built, repeats=repeats)
    return ring_time, built_time


def _series(x: Sequence[int], times: Sequence[Times]) -> list[Series]:
    return [
        Series(kind, [float(v) for v in x], [row[i] for row in times])
        for i, kind in enumerate(KINDS)
    ]


def _named(names: object, times: Sequence[Times]) -> dict[str, dict[str, float]]:
    return {
        name: dict(zip(KINDS, row, strict=True)) for name, row in zip(names, times, strict=True)
    }  # type: ignore[call-overload]


def _spelt(shape: Sequence[int]) -> str:
    return "·".join(map(str, shape))

"""What all environments share: every vector but one is read, checked and multiplied up without repeating work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import TypeVar

from torch import Tensor

from getd.errors import ShapeError

T = TypeVar("T")


def chosen_places(places: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """The places asked for, all of ``0 .. count - 1`` where none are named.

    Raises
    ------
    ShapeError
        If there are fewer than two modes, or a place is not one of them.

    >>> chosen_places(None, 3), chosen_places([2, 0], 3)
    ((0, 1, 2), (2, 0))
    """
    if count < 2:
        raise ShapeError(f"an environment needs at least 2 modes, found {count}")
    places = tuple(range(count) if places is None else places)
    for place in places:
        if not 0 <= place < count:
            raise ShapeError(f"place {place} is not one of the modes 0 .. {count - 1}")
    return places


def read_vectors(
    vectors: Sequence[Tensor | None], sizes: Sequence[int], places: Sequence[int]
) -> dict[int, Tensor]:
    """The vectors that the environments of ``places`` read: all, but for the vector of a place that stands alone.

    Raises
    ------
    ShapeError
        If a vector that is read is missing, is not ``(b, d_j)``, or has another ``b`` than the first.
    """
    if len(vectors) != len(sizes):
        raise ShapeError(f"expected {len(sizes)} vectors, one for each mode, found {len(vectors)}")
    read: dict[int, Tensor] = {}
    for mode, (vector, size) in enumerate(zip(vectors, sizes, strict=True)):
        if set(places) == {mode}:
            continue
        if vector is None:
            raise ShapeError(
                f"vector {mode} is missing, and other places than {mode} are asked for"
            )
        if vector.dim() != 2 or vector.shape[1] != size:
            raise ShapeError(
                f"vector {mode} has shape {tuple(vector.shape)} but its mode has size {size}"
            )
        first = next(iter(read), mode)
        if vector.shape[0] != read.get(first, vector).shape[0]:
            raise ShapeError(
                f"vector {mode} has {vector.shape[0]} rows but vector {first} has {read[first].shape[0]}"
            )
        read[mode] = vector
    return read


def products_of_others(
    items: Mapping[int, T], count: int, places: Sequence[int], multiply: Callable[[T, T], T]
) -> list[T]:
    r"""For each place ``j``, the product of all items but ``j`` around the ring.

    .. math::
        A_j = M_{j+1} \cdots M_{m-1} \; M_0 \cdots M_{j-1}

    ``items`` maps ``0 .. count - 1`` to what ``multiply`` takes; the item of a place that stands alone is not read and
    may be missing.

    Notes
    -----
    Prefix and suffix products are shared: ``3 (m - 2)`` multiplications for all ``m`` places, ``m - 2`` for one.

    >>> products_of_others(dict(enumerate("abcd")), 4, [0, 1, 3], str.__add__)
    ['bcd', 'cda', 'abc']
    """
    first, last = min(places, default=count), max(places, default=0)
    prefixes = list(accumulate((items[j] for j in range(last)), multiply))
    suffixes = list(
        accumulate(
            (items[j] for j in range(count - 1, first, -1)), lambda done, item: multiply(item, done)
        )
    )
    return [
        reduce(multiply, suffixes[count - 2 - j : count - 1 - j] + prefixes[max(j - 1, 0) : j])
        for j in places
    ]

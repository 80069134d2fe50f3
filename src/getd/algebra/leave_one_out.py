"""What all environments share: check every vector but one, multiply without repeating work."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

from getd.algebra.aliases import ByMode, Modes, Sizes, Vectors
from getd.errors import ShapeError

T = TypeVar("T")


def chosen_modes(modes: Modes | None, count: int) -> Sizes:
    """Return the modes whose environments are computed: all of ``0 .. count - 1`` by default.

    Refuses fewer than two modes, and a mode that is not one of them.

    >>> chosen_modes(None, 3), chosen_modes([2, 0], 3)
    ((0, 1, 2), (2, 0))
    """
    if count < 2:
        raise ShapeError(f"an environment needs at least 2 modes, found {count}")
    modes = tuple(range(count) if modes is None else modes)
    for mode in modes:
        if not 0 <= mode < count:
            raise ShapeError(f"mode {mode} is not one of the modes 0 .. {count - 1}")
    return modes


def read_vectors(vectors: Vectors, sizes: Sequence[int], modes: Modes) -> ByMode:
    """Return the vectors that the environments of ``modes`` read: all but that of a single mode.

    Refuses vectors that are missing, are not ``(b, d_j)``, or differ in ``b``.
    """
    if len(vectors) != len(sizes):
        raise ShapeError(f"expected {len(sizes)} vectors, one for each mode, found {len(vectors)}")

    read = {}
    for mode, (vector, size) in enumerate(zip(vectors, sizes, strict=True)):
        if set(modes) == {mode}:
            continue
        if vector is None:
            raise ShapeError(f"vector {mode} is missing, but other modes than {mode} are chosen")
        if vector.shape[1:] != (size,):
            raise ShapeError(
                f"vector {mode} has shape {tuple(vector.shape)} but its mode has size {size}"
            )

        read[mode] = vector
        first = min(read)
        rows = vector.shape[0]
        expected = read[first].shape[0]
        if rows != expected:
            raise ShapeError(f"vector {mode} has {rows} rows but vector {first} has {expected}")
    return read


def products_of_others(
    items: dict[int, T], count: int, modes: Modes, multiply: Callable[[T, T], T]
) -> list[T]:
    r"""Multiply all items but ``j`` around the ring, for each mode ``j``.

    .. math::
        A_j = M_{j+1} \cdots M_{m-1} \; M_0 \cdots M_{j-1}

    ``items`` maps ``0 .. count - 1`` to what ``multiply`` takes. The item of a single mode is not
    read and may be missing. Prefix and suffix products are shared: ``3 (m - 2)`` multiplications
    for all ``m`` modes, ``m - 2`` for one.

    >>> products_of_others(dict(enumerate("abcd")), 4, [0, 1, 3], str.__add__)
    ['bcd', 'cda', 'abc']
    """
    before: dict[int, T] = {}  # the product of all items before j, up to the last mode
    for j in range(1, max(modes, default=0) + 1):
        item = items[j - 1]
        before[j] = multiply(before[j - 1], item) if j > 1 else item

    after: dict[int, T] = {}  # the product of all items after j, down to the first mode
    for j in range(count - 2, min(modes, default=count) - 1, -1):
        item = items[j + 1]
        after[j] = multiply(item, after[j + 1]) if j < count - 2 else item

    products = []
    for j in modes:
        sides = [side[j] for side in (after, before) if j in side]
        products.append(reduce(multiply, sides))
    return products

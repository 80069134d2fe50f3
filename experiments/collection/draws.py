"""Names that people could read, and the draws that the kinds share."""

from __future__ import annotations

from itertools import islice, product

import numpy as np
import numpy.typing as npt

from getd.arrays import Floats, Ids

Names = npt.NDArray[np.str_]

FIRST_NAMES = (
    "Ada Ben Cleo Dario Elin Femi Greta Hugo Ines Jonas Kira Luca Mira Noor Olga Piotr "
    "Quinn Rosa Sven Tariq Uma Viktor Wanda Yusuf"
)
LAST_NAMES = (
    "Abara Brandt Castell Duarte Ekman Farrow Galloway Hale Ibarra Jansen Kovac Lindqvist "
    "Moreau Nakata Okafor Petrov Quist Rossi Sato Thorne Ueda Varga Weber Xu Young Zeman "
    "Almeida Bauer Conti Dimitrov Evans Fischer Grieg Horvat Ivanov Jones"
)
INITIALS = ("", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
TOWN_BEGINNINGS = (
    "Alder Birch Cold Dun East Fair Glen Harrow Inver Kings Loch Moss New Oak Pine Quarry "
    "Reed Stone Thorn Upper Wester Ash Black Clear"
)
TOWN_ENDINGS = (
    "bury ford ham ton mouth field bridge dale stead wick haven brook moor gate cliff well "
    "burn hurst minster port"
)
ADJECTIVES = (
    "Silent Golden Broken Distant Hidden Last Winter Crooked Glass Burning Paper Second "
    "Northern Empty Scarlet Quiet Iron Borrowed Hollow Early"
)
NOUNS = (
    "Harbour Orchard Letter River Garden Clock Mirror Voyage Island Bridge Shadow Lantern "
    "Library Mountain Season Promise Window Kingdom Engine Feather Tide Map Winter House "
    "Forest Song Road Key Storm Field"
)


def people(n: int) -> Names:
    """Return the names of ``n`` people; there are 23,328."""
    names = []
    triples = product(INITIALS, LAST_NAMES.split(), FIRST_NAMES.split())
    for initial, last, first in islice(triples, n):
        names.append(f"{first} {initial}. {last}" if initial else f"{first} {last}")
    return np.array(names)


def towns(n: int) -> Names:
    """Return the names of ``n`` towns; there are 480."""
    pairs = islice(product(TOWN_ENDINGS.split(), TOWN_BEGINNINGS.split()), n)
    return np.array([beginning + ending for ending, beginning in pairs])


def titles(n: int) -> Names:
    """Return the titles of ``n`` books or films; there are 600."""
    pairs = islice(product(NOUNS.split(), ADJECTIVES.split()), n)
    return np.array([f"The {adjective} {noun}" for noun, adjective in pairs])


def numbered(word: str, n: int) -> Names:
    """Return ``word 1``, ``word 2``, …"""
    return np.array([f"{word} {number}" for number in range(1, n + 1)])


def dates(first: str, n: int) -> Names:
    """Return ``n`` days in a row as ISO dates."""
    return (np.datetime64(first) + np.arange(n)).astype(str)


def popular(rng: np.random.Generator, n: int, size: int, exponent: float = 1.0) -> Ids:
    """Draw items by Zipf's law; which of them are popular is random."""
    weights = 1 / np.arange(1, n + 1) ** exponent
    return rng.choice(rng.permutation(n), size, p=weights / weights.sum())


def grouped(rng: np.random.Generator, n: int, n_groups: int) -> Ids:
    """Return the group of each of ``n`` items: random groups of the same size, up to one."""
    return rng.permutation(n) % n_groups


def member(rng: np.random.Generator, group: Ids, drawn: Ids) -> Ids:
    """Draw an item of each of the ``drawn`` groups; ``group`` has that of every item."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    items: Ids = order[starts[drawn] + rng.integers(0, sizes[drawn])]
    return items


def by_weight(rng: np.random.Generator, weights: Floats) -> Ids:
    """Draw a column for each row, by the weights of the row."""
    totals = weights.cumsum(axis=1)
    level = rng.random(len(weights)) * totals[:, -1]
    columns: Ids = (totals > level[:, None]).argmax(axis=1)
    return columns


def noisy(rng: np.random.Generator, values: Ids, n: int, share: float) -> Ids:
    """Replace a share of the values by random ones below ``n``."""
    return np.where(rng.random(len(values)) < share, rng.integers(0, n, len(values)), values)

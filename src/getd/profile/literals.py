"""Entities that are values rather than things: dates and numbers, told by how they are written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from getd.facts.vocabulary import Vocabulary

_DATE = r"^[+-]?\d{4,}-\d{2}(-\d{2}(T.*)?)?$"  # 1991-92, 1991-06-12, and Wikidata's +1991-06-12T00:00:00Z#…
_NUMBER = r"^[+-]?(\d{1,3}(,\d{3})+|0|[1-9]\d{0,5})([.]\d+)?([eE][+-]?\d+)?(#.*)?$"  # longer digit strings are identifiers


def dates(names: Vocabulary) -> npt.NDArray[np.bool_]:
    """Which names read as a date or a span of years.

    >>> dates(Vocabulary(["+1954-00-00T00:00:00Z#0#9", "1991-92", "Q42"])).tolist()
    [True, True, False]
    """
    return names.names.str.contains(_DATE).to_numpy()


def numbers(names: Vocabulary) -> npt.NDArray[np.bool_]:
    """Which names read as a number; digits with a leading zero, or more than six of them, are taken for an identifier.

    >>> numbers(Vocabulary(["-3.5", "007", "12", "MVP", "10593526"])).tolist()
    [True, False, False, True, False]
    """
    return names.names.str.contains(_NUMBER).to_numpy()

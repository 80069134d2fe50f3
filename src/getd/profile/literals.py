"""Entities that are values rather than things: dates and numbers, recognised by their spelling."""

from getd.arrays import Bools
from getd.facts.vocabulary import Vocabulary

# 1991-92, 1991-06-12, and Wikidata's +1991-06-12T00:00:00Z#…
_DATE = r"^[+-]?\d{4,}-\d{2}(-\d{2}(T.*)?)?$"

# A longer string of digits, or one with a leading zero, is an identifier.
_NUMBER = r"^[+-]?(\d{1,3}(,\d{3})+|0|[1-9]\d{0,5})([.]\d+)?([eE][+-]?\d+)?(#.*)?$"


def dates(names: Vocabulary) -> Bools:
    """Which names read as a date or a span of years.

    >>> dates(Vocabulary(["+1954-00-00T00:00:00Z#0#9", "1991-92", "Q42"])).tolist()
    [True, True, False]
    """
    return names.names.str.contains(_DATE).to_numpy()


def numbers(names: Vocabulary) -> Bools:
    """Which names read as a number of at most six digits without a leading zero.

    >>> numbers(Vocabulary(["-3.5", "007", "10593526", "12", "MVP"])).tolist()
    [True, False, False, True, False]
    """
    return names.names.str.contains(_NUMBER).to_numpy()

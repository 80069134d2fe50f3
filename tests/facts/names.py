"""Every nasty name: tabs, line ends, quotes, byte order marks, any script; never empty or NUL."""

from __future__ import annotations

from hypothesis import strategies as st

_SPECIAL = st.sampled_from(
    ["\t", "\n", "\r", "\r\n", " ", "\\", "\\t", '"', '""', ",", ";", "'", "{", "[1]", "null"]
    + ["NaN", "#", "\ufeff", "é", "PAR1", "relation", "e1", "\u2028", "\x85", "\x0b", "\x1f\x8b"]
    + ["𝔘", "1e5", "true", '{"relation":1}', "roles", "?"]
)
_ANY = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
NAMES = st.lists(st.one_of(_SPECIAL, _ANY), min_size=1, max_size=6).map("".join)

"""Entities by what a person has typed so far."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
import polars as pl

from getd.facts.vocabulary import Vocabulary

MOST_COMPARED = 2000  # names that share most with what was typed, compared letter by letter
MOST_PAIRS = 16  # of letters that names are searched for


class NameSearch:
    """Finds names that begin with a text, then those that hold it, then those that resemble it."""

    def __init__(
        self, names: Vocabulary, weight: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> None:
        self._names, self._weight = names, weight
        self._folded = names.names.str.to_lowercase()

    def find(self, text: str, limit: int) -> list[str]:
        """The best matches; of those that match alike, the ones of most facts first."""
        text = text.strip().lower()
        if not text:
            return self._best(np.arange(len(self._names)), limit)
        begins = self._folded.str.starts_with(text).to_numpy()
        found = self._best(np.flatnonzero(begins), limit)
        if len(found) < limit:
            holds = self._folded.str.contains(text, literal=True).to_numpy() & ~begins
            found += self._best(np.flatnonzero(holds), limit - len(found))
        if not found:
            found = self._alike(text, limit)
        return found

    def _best(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]], limit: int) -> list[str]:
        order = np.lexsort([ids, -self._weight[ids]])[:limit]
        return self._names.decode(ids[order])

    def _alike(self, text: str, limit: int) -> list[str]:
        parts = sorted({text[i : i + 2] for i in range(max(len(text) - 1, 1))})
        parts = parts[:: -(-len(parts) // MOST_PAIRS)]
        shared = pl.select(
            pl.sum_horizontal(
                [
                    pl.lit(self._folded).str.contains(part, literal=True).cast(pl.Int32)
                    for part in parts
                ]
            )
        ).to_series()
        counts = shared.to_numpy()
        near = np.argsort(-counts, kind="stable")[:MOST_COMPARED]
        near = near[counts[near] > 0]
        ratios = [
            (SequenceMatcher(None, text, self._folded[int(i)]).ratio(), -int(i)) for i in near
        ]
        best = [
            (-place, ratio) for ratio, place in sorted(ratios, reverse=True)[:limit] if ratio >= 0.4
        ]
        return self._names.decode([place for place, _ in best]) if best else []

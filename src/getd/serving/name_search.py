"""Find entities by what a person has typed so far."""

from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from getd.arrays import Ids
from getd.facts.vocabulary import Vocabulary

MAX_COMPARED = 2000  # names that share most with the text, compared letter by letter
MAX_PAIRS = 16  # pairs of letters that names are searched for
MIN_RATIO = 0.4  # of letters that a similar name shares with the text


class NameSearch:
    """Finds names that begin with a text, then those that contain it, or that resemble it."""

    def __init__(self, names: Vocabulary, weight: Ids) -> None:
        self._names = names
        self._weight = weight  # of each name: of equal matches the heavier come first
        self._folded = names.names.str.to_lowercase()

    def find(self, text: str, limit: int) -> list[str]:
        """Return the best matches."""
        text = text.strip().lower()
        if not text:
            return self._heaviest(np.arange(len(self._names)), limit)

        begins = self._folded.str.starts_with(text).to_numpy()
        matches = self._heaviest(np.flatnonzero(begins), limit)
        if len(matches) < limit:
            contains = self._folded.str.contains(text, literal=True).to_numpy() & ~begins
            matches += self._heaviest(np.flatnonzero(contains), limit - len(matches))
        return matches or self._similar(text, limit)

    def _heaviest(self, ids: Ids, limit: int) -> list[str]:
        order = np.lexsort([ids, -self._weight[ids]])[:limit]
        return self._names.decode(ids[order])

    def _similar(self, text: str, limit: int) -> list[str]:
        # Names that share the most pairs of letters with the text; of many pairs only some count.
        pairs = sorted({"".join(pair) for pair in pairwise(text)} or {text})
        pairs = pairs[:: -(-len(pairs) // MAX_PAIRS)]
        counts = np.zeros(len(self._folded), dtype=np.int64)
        for pair in pairs:
            counts += self._folded.str.contains(pair, literal=True).to_numpy()
        ids = np.argsort(-counts, kind="stable")[:MAX_COMPARED]
        ids = ids[counts[ids] > 0]

        ratios = []
        for entity in ids.tolist():
            ratio = SequenceMatcher(None, text, self._folded[entity]).ratio()
            if ratio >= MIN_RATIO:
                ratios.append((-ratio, entity))
        return self._names.decode([entity for _, entity in sorted(ratios)[:limit]])

r"""Memory: what the training facts alone say about a question, added to the scores of a model.

.. math::
    f(c) = T \phi(c) + \sum_s w_s P_s(c) + v_s \log\frac{P_s(c) + \varepsilon}{\varepsilon}

A source :math:`s` is one of these:

- ``frequency``: :math:`P_s(c)` is the share of ``c`` at the open position, among all facts of the
  relation;
- one or two given entities at their positions, or all of them: the same among the facts that have
  these entities there;
- ``beside``: the share of ``c`` among all entities in the facts of a given entity, in any relation
  and at any position, summed over the given entities;
- ``beside two``: the same with two given entities.

Shares below a hundredth count as 0, so the sums are sparse: an entity of many facts says little
about any. Of frequencies, the highest are kept. Weights are learnt from the training facts, each
looked up as if it were not there, and then fitted to the model on validation
(:mod:`~getd.memory.prior`, :mod:`~getd.memory.fit`).
"""

from collections.abc import Container, Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from getd.arrays import Ids
from getd.facts.facts import Blocks
from getd.models.counts import Counts

EPSILON = 1e-3  # ε
MIN_SHARE = 0.01  # a smaller share counts as 0, so a key has a hundred candidates at most
MOST_PAIRED = 7  # given entities of which every two are a source
MOST_PAIRS = 20_000_000  # of given entities in all facts of an arity, which are counted
MOST_FREQUENT = 200  # candidates of a position of a relation, by frequency
FREQUENCY = "frequency"  # the source that reads no given entity
CO_OCCURRENCE = ("beside", "beside two")  # the sources that know no relation and no position
MOST_NUMBERED = 2**20  # entities, of which two and a relation are one number of 64 bits
MULTIPLIER = -7046029254386353131  # odd, so that products of 64 bits lose nothing


class Features(NamedTuple):
    """What a memory knows about the candidates of questions; all others have no features."""

    rows: Tensor  # (t,): the questions, ascending
    candidates: Tensor  # (t,): ascending within a question
    values: Tensor  # (t, 2 s): the share and its logarithm, of each source in turn


class _LookUp(NamedTuple):
    """Questions as keys of counts."""

    name: str  # of the counts
    source: str
    given: tuple[int, ...]  # the positions that the keys are made of
    keys: Tensor  # (b,)


class _Matches(NamedTuple):
    """What occurs with the keys of a look-up."""

    rows: Tensor  # (t,): the questions, ascending
    candidates: Tensor  # (t,)
    counts: Tensor  # (t,): of each candidate with its key
    totals: Tensor  # (t,): of all candidates with its key


class Memory(nn.Module):
    """Counts of candidates, next to given entities and without; made by :meth:`from_facts`."""

    def __init__(self, n_entities: int) -> None:
        super().__init__()
        self.n_entities = n_entities
        self.counts = nn.ModuleDict()  # "arity-position-source", and those of CO_OCCURRENCE
        self.unpaired: set[int] = set()  # arities of too many facts to count pairs in

    @classmethod
    def from_facts(cls, blocks: Blocks, n_entities: int, paired: Container[str] = ()) -> Self:
        """Count facts; the arities in ``paired`` have pairs, however many there are."""
        memory = cls(n_entities)
        for arity, facts in blocks.items():
            is_large = len(facts) * arity * comb(arity - 1, 2) > MOST_PAIRS
            if is_large and str(arity) not in paired:
                memory.unpaired.add(arity)

        counted: dict[str, list[tuple[Ids, Ids]]] = {}  # keys and values, by name of counts
        sources = {}
        for arity, facts in blocks.items():
            relation, entities = facts.to_tensors()
            for position in range(arity if len(facts) else 0):
                column = facts.entities[:, position]
                for lookup in memory._lookups(relation, entities, position):
                    counted.setdefault(lookup.name, []).append((lookup.keys.numpy(), column))
                    sources[lookup.name] = lookup.source

        # A fact that is taken out raises the shares of all others: some below the least may count.
        for name in list(counted):
            keys, values = map(np.concatenate, zip(*counted.pop(name), strict=True))
            if sources[name] == FREQUENCY:
                counts = Counts(keys, values, n_entities, most=MOST_FREQUENT)
            else:
                counts = Counts(keys, values, n_entities, least=MIN_SHARE / 2)
            memory.counts[name] = counts
        return memory

    def sources(self, arity: int, position: int) -> list[str]:
        """Name the sources for questions with this position open."""
        choices = self._given(arity, position)
        sizes = {len(given) for given in choices}
        names = [_name(given) for given in choices]
        for size, source in enumerate(CO_OCCURRENCE, start=1):
            if size in sizes:
                names.append(source)
        return names

    def features(
        self, relation: Tensor, entities: Tensor, position: int, leave_out: bool = False
    ) -> Features:
        """Look up the candidates that any source knows, for questions with this position open.

        With ``leave_out`` the questions are facts that were counted: each is looked up as if it
        had not been. Only then the column ``position`` is read.
        """
        sources = self.sources(entities.shape[1], position)
        n_sources = len(sources)
        empty = relation[:0]
        cells = [empty]  # a question and a candidate, as one number
        columns = [empty]
        shares = [empty.double()]
        for lookup in self._lookups(relation, entities, position):
            matches = self._find(lookup)
            if leave_out:
                matches = self._without_fact(matches, lookup, entities, position)
            share = matches.counts / matches.totals.clamp(min=1)
            kept = share >= (1e-12 if lookup.source == FREQUENCY else MIN_SHARE)

            rows = matches.rows[kept]
            cells.append(rows * self.n_entities + matches.candidates[kept])
            columns.append(torch.full_like(rows, sources.index(lookup.source)))
            shares.append(share[kept])

        # Several lookups may know a candidate by the same source: their features are added.
        distinct, index = torch.unique(torch.cat(cells), return_inverse=True)
        share = torch.cat(shares)
        pairs = torch.stack([share, torch.log((share + EPSILON) / EPSILON)], dim=1)
        sums = pairs.new_zeros(len(distinct) * n_sources, 2)
        sums.index_add_(0, index * n_sources + torch.cat(columns), pairs)

        rows = distinct // self.n_entities
        candidates = distinct % self.n_entities
        return Features(rows, candidates, sums.view(len(distinct), 2 * n_sources))

    def _lookups(self, relation: Tensor, entities: Tensor, position: int) -> Iterator[_LookUp]:
        """Yield the look-ups for questions with this position open."""
        arity = entities.shape[1]
        for given in self._given(arity, position):
            source = _name(given)
            chosen = entities[:, list(given)]
            keys = self._keys(relation, chosen)
            yield _LookUp(f"{arity}-{position}-{source}", source, given, keys)

            if 0 < len(given) <= len(CO_OCCURRENCE):
                source = CO_OCCURRENCE[len(given) - 1]
                yield _LookUp(source, source, given, self._unordered_keys(chosen))

    def _given(self, arity: int, position: int) -> list[tuple[int, ...]]:
        """Return the choices of given positions: none, one, two, and all where these are more.

        There are too many pairs in very long facts, and in very many.
        """
        others = [j for j in range(arity) if j != position]
        choices: list[tuple[int, ...]] = [(), *combinations(others, 1)]
        if len(others) <= MOST_PAIRED and arity not in self.unpaired:
            choices += combinations(others, 2)
        if len(others) > 1 and tuple(others) not in choices:
            choices.append(tuple(others))
        return choices

    def _find(self, lookup: _LookUp) -> _Matches:
        keys = lookup.keys
        if lookup.name not in self.counts:
            return _Matches(keys[:0], keys[:0], keys[:0].double(), keys[:0])
        counts = self.counts[lookup.name]
        assert isinstance(counts, Counts)
        rows, candidates, weights = counts.find(keys)
        return _Matches(rows, candidates, weights, counts.total(keys)[rows])

    def _without_fact(
        self, matches: _Matches, lookup: _LookUp, entities: Tensor, position: int
    ) -> _Matches:
        """Take the fact of each question out of what was counted with its key."""
        rows = matches.rows
        arity = entities.shape[1]
        if lookup.source not in CO_OCCURRENCE:
            is_own = matches.candidates == entities[rows, position]
            return matches._replace(
                counts=matches.counts - is_own.double(), totals=matches.totals - 1
            )

        # The fact was counted with all of its entities that make this key.
        choices = list(combinations(range(arity), len(lookup.given)))
        chosen = entities[:, torch.tensor(choices)]  # (b, choices, given)
        keys = self._unordered_keys(chosen.flatten(0, 1)).view(chosen.shape[:2])
        is_key = keys == lookup.keys[:, None]

        counts = matches.counts.clone()
        totals = matches.totals.clone()
        is_candidate = entities[rows] == matches.candidates[:, None]  # (t, arity)
        for number in is_key.any(dim=0).nonzero()[:, 0].tolist():
            has_key = is_key[rows, number]
            others = [other for other in range(arity) if other not in choices[number]]
            counts -= has_key * is_candidate[:, others].sum(dim=1)
            totals -= has_key * len(others)
        return matches._replace(counts=counts, totals=totals)

    def _keys(self, relation: Tensor, given: Tensor) -> Tensor:
        """Combine a relation and the given entities of each question into one number."""
        if given.shape[1] > len(CO_OCCURRENCE) or self.n_entities > MOST_NUMBERED:
            return self._hashes(relation, given)
        keys = relation
        for column in given.unbind(1):
            keys = keys * self.n_entities + column
        return keys

    def _hashes(self, relation: Tensor, given: Tensor) -> Tensor:
        """The same where the numbers would be too large: two keys may be one, but hardly ever."""
        keys = relation
        for column in given.unbind(1):
            keys = (keys ^ (keys >> 29)) * MULTIPLIER + column
        return keys

    def _unordered_keys(self, given: Tensor) -> Tensor:
        """Combine the given entities of each question, in the order of their ids."""
        ordered = given.sort(dim=1).values
        return self._keys(torch.zeros_like(given[:, 0]), ordered)


def _name(given: tuple[int, ...]) -> str:
    """Name given positions: ``"0"``, ``"0+2"``."""
    return "+".join(map(str, given)) or FREQUENCY


def kind_of(source: str, arity: int) -> str:
    """Return what a source is, whatever the positions: ``"one"``, ``"two"``, ``"all"`` ...

    >>> [kind_of(source, 4) for source in ("frequency", "0", "0+2", "0+1+2", "beside")]
    ['frequency', 'one', 'two', 'all', 'beside']
    """
    if source == FREQUENCY or source in CO_OCCURRENCE:
        return source
    n_given = source.count("+") + 1
    return "all" if n_given == arity - 1 and n_given > 1 else ("one", "two")[n_given - 1]

"""One file of facts into train, valid and test."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import polars as pl

from getd.facts.encode import EntityNames, encode_blocks, relations_of
from getd.facts.labels import Labels
from getd.facts.row_index import RowIndex
from getd.facts.vocabulary import Vocabulary

Ids = npt.NDArray[np.int64]
SPLITS = ("train", "valid", "test")


def split_labels(labels: Labels, seed: int) -> dict[str, Labels]:
    """Facts 8:1:1 into train, valid and test, at random by ``seed``; copies of a fact go together.

    Every entity and relation of valid and test is in train too, where that can be (:func:`split_rows`).
    """
    if len(labels) == 0:
        return {}
    ids = {relation: number for number, relation in enumerate(sorted(relations_of([labels])))}
    names = EntityNames.of(labels)
    entities = Vocabulary(names.names)
    members: list[Ids] = []  # the distinct facts of each block; a relation's symbols follow the entities'
    copies: list[Ids] = []  # which of them each row is
    n_symbols = len(entities) + len(ids)
    for roles, _, facts in encode_blocks(labels, names, entities, ids):
        rows = np.column_stack([facts.relation + len(entities), facts.entities])
        index, numbers = RowIndex.build(list(rows.T), [n_symbols] * (1 + len(roles)))
        distinct = np.empty((len(index), rows.shape[1]), dtype=np.int64)
        distinct[numbers] = rows
        copies.append(numbers + sum(map(len, members)))
        members.append(distinct)
    n_facts = sum(map(len, members))
    held_out = np.flatnonzero(split_rows(members, n_symbols, seed, 2 * (n_facts // 10)))
    held_out = np.random.default_rng([seed, 1]).permutation(held_out)
    part = np.zeros(n_facts, dtype=np.int64)
    part[held_out[::2]], part[held_out[1::2]] = 1, 2
    splits = {}
    for number, split in enumerate(SPLITS):
        chosen = {roles: part[rows] == number for roles, rows in zip(labels.blocks, copies, strict=True)}
        blocks = {roles: labels.blocks[roles].filter(pl.Series(mask)) for roles, mask in chosen.items() if mask.any()}
        if blocks:
            splits[split] = Labels(MappingProxyType(blocks))
    return splits


def split_rows(members: Sequence[Ids], n_symbols: int, seed: int, held_out: int) -> npt.NDArray[np.bool_]:
    """Choose ``held_out`` facts at random so that what is left still holds every symbol, where that can be.

    Parameters
    ----------
    members
        Blocks ``(n, k)`` of symbols (entities and relations, numbered apart); facts are numbered through all blocks.
    n_symbols
        How many symbols there are.
    held_out
        How many facts to choose; where covering every symbol leaves too few, the rest are chosen at random.

    Returns
    -------
    A mask over the facts.

    Notes
    -----
    Facts come in a random order and are taken while each of their symbols stays in some other fact, as one would do
    it by hand; whole rounds are taken at once: the first ``c - 1`` candidates of a symbol with ``c`` facts left may go.
    """
    facts, symbols = _pairs(members)
    n_facts = sum(len(block) for block in members)
    rank = np.random.default_rng(seed).permutation(n_facts)
    chosen = np.zeros(n_facts, dtype=bool)
    candidate = np.ones(n_facts, dtype=bool)
    left = np.bincount(symbols, minlength=n_symbols)
    while chosen.sum() < held_out and candidate.any():
        candidate[facts[left[symbols] < 2]] = False
        here = candidate[facts]
        may_go = candidate.copy()
        may_go[facts[here][_place_in_group(symbols[here], rank[facts[here]]) >= left[symbols[here]] - 1]] = False
        going = np.flatnonzero(may_go)
        going = going[np.argsort(rank[going])][: held_out - int(chosen.sum())]
        chosen[going], candidate[going] = True, False
        left -= np.bincount(symbols[chosen[facts] & np.isin(facts, going)], minlength=n_symbols)
    rest = np.flatnonzero(~chosen)
    chosen[rest[np.argsort(-rank[rest])][: held_out - int(chosen.sum())]] = True
    return chosen


def _pairs(members: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Which fact holds which symbol, each pair once."""
    facts, symbols, first = [], [], 0
    for block in members:
        ordered = np.sort(block, axis=1)
        new = np.ones(ordered.shape, dtype=bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        facts.append(first + np.nonzero(new)[0])
        symbols.append(ordered[new])
        first += len(block)
    return np.concatenate(facts), np.concatenate(symbols)


def _place_in_group(groups: Ids, rank: Ids) -> Ids:
    """The place of each element among those of its group, from 0, by rank."""
    order = np.lexsort((rank, groups))
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    places = np.empty(len(groups), dtype=np.int64)
    places[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return places

"""One file of facts into train, valid and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from getd.arrays import Ids
from getd.facts.encode import EntityNames, encode_blocks, relations_of
from getd.facts.named import NamedFacts
from getd.facts.row_index import RowIndex
from getd.facts.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")


def split_named(labels: NamedFacts, seed: int) -> dict[str, NamedFacts]:
    """Facts 8:1:1 into train, valid and test, at random by ``seed``; copies of a fact go together.

    Every entity and relation of valid and test is in train too, where that can be (:func:`split_rows`).
    """
    if len(labels) == 0:
        return {}
    members, copies, n_symbols = _distinct_facts(labels)
    numbers = _numbered_by_signature(members)
    n_facts = sum(len(facts) for facts, _ in members)
    facts = [block for block, _ in members]
    held_out = np.flatnonzero(split_rows(facts, n_symbols, seed, 2 * (n_facts // 10), numbers))
    held_out = np.random.default_rng([seed, 1]).permutation(held_out)
    part = np.zeros(n_facts, dtype=np.int64)
    part[held_out[::2]], part[held_out[1::2]] = 1, 2
    splits = {}
    for number, split in enumerate(SPLITS):
        blocks = {}
        for (arity, block), rows, own in zip(labels.blocks.items(), copies, numbers, strict=True):
            chosen = part[own[rows]] == number
            if chosen.any():
                blocks[arity] = block.take(chosen)
        if blocks:
            splits[split] = replace(labels.with_blocks(blocks), notices=())
    return splits


def _distinct_facts(labels: NamedFacts) -> tuple[list[tuple[Ids, Ids]], list[Ids], int]:
    """For each block its distinct facts, as symbols, with their signatures, and which of them each row is.

    Symbols are entities and relations, numbered apart; the last value is how many there are.
    """
    ids = {relation: number for number, relation in enumerate(sorted(relations_of([labels])))}
    names = EntityNames.of(labels)
    entities = Vocabulary(names.names)
    n_symbols = len(entities) + len(ids)
    members, copies = [], []
    for block, facts in encode_blocks(labels, names, entities, ids):
        signature = block.signature.astype(np.int64)
        rows = np.column_stack([signature, facts.relation + len(entities), facts.entities])
        sizes = [len(labels.signatures), *[n_symbols] * (1 + facts.arity)]
        index, numbers = RowIndex.build(list(rows.T), sizes)
        distinct = np.empty((len(index), rows.shape[1]), dtype=np.int64)
        distinct[numbers] = rows
        members.append((distinct[:, 1:], distinct[:, 0]))
        copies.append(numbers)
    return members, copies, n_symbols


def _numbered_by_signature(members: Sequence[tuple[Ids, Ids]]) -> list[Ids]:
    """A number for every distinct fact over all blocks: signature by signature, and in order within each."""
    signatures = np.concatenate([signature for _, signature in members])
    numbers = np.empty(len(signatures), dtype=np.int64)
    numbers[np.argsort(signatures, kind="stable")] = np.arange(len(signatures))
    ends = np.cumsum([len(signature) for _, signature in members])
    return np.split(numbers, ends[:-1])


def split_rows(
    members: Sequence[Ids],
    n_symbols: int,
    seed: int,
    held_out: int,
    numbers: Sequence[Ids] | None = None,
) -> npt.NDArray[np.bool_]:
    """Choose ``held_out`` facts at random so that what is left still holds every symbol, where that can be.

    Parameters
    ----------
    members
        Blocks ``(n, k)`` of symbols (entities and relations, numbered apart).
    n_symbols
        How many symbols there are.
    held_out
        How many facts to choose; where covering every symbol leaves too few, the rest are chosen at random.
    numbers
        The number of each fact of each block; counted through all blocks where they are not given.

    Returns
    -------
    A mask over the facts.

    Notes
    -----
    Facts come in a random order and are taken while each of their symbols stays in some other fact, as one would do
    it by hand; whole rounds are taken at once: the first ``c - 1`` candidates of a symbol with ``c`` facts left may go.
    """
    n_facts = sum(len(block) for block in members)
    if numbers is None:
        numbers = np.split(np.arange(n_facts), np.cumsum([len(block) for block in members])[:-1])
    facts, symbols = _pairs(members, numbers)
    rank = np.random.default_rng(seed).permutation(n_facts)
    chosen = np.zeros(n_facts, dtype=bool)
    candidate = np.ones(n_facts, dtype=bool)
    left = np.bincount(symbols, minlength=n_symbols)
    while chosen.sum() < held_out and candidate.any():
        candidate[facts[left[symbols] < 2]] = False
        here = candidate[facts]
        may_go = candidate.copy()
        may_go[
            facts[here][
                _place_in_group(symbols[here], rank[facts[here]]) >= left[symbols[here]] - 1
            ]
        ] = False
        going = np.flatnonzero(may_go)
        going = going[np.argsort(rank[going])][: held_out - int(chosen.sum())]
        chosen[going], candidate[going] = True, False
        left -= np.bincount(symbols[chosen[facts] & np.isin(facts, going)], minlength=n_symbols)
    rest = np.flatnonzero(~chosen)
    chosen[rest[np.argsort(-rank[rest])][: held_out - int(chosen.sum())]] = True
    return chosen


def _pairs(members: Sequence[Ids], numbers: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Which fact holds which symbol, each pair once."""
    facts, symbols = [], []
    for block, own in zip(members, numbers, strict=True):
        ordered = np.sort(block, axis=1)
        new = np.ones(ordered.shape, dtype=bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        facts.append(own[np.nonzero(new)[0]])
        symbols.append(ordered[new])
    return np.concatenate(facts), np.concatenate(symbols)


def _place_in_group(groups: Ids, rank: Ids) -> Ids:
    """The place of each element among those of its group, from 0, by rank."""
    order = np.lexsort((rank, groups))
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    places = np.empty(len(groups), dtype=np.int64)
    places[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return places

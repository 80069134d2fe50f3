"""Split one file of facts into train, valid and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from getd.arrays import Bools, Ids, expand_spans
from getd.facts.encode import EntityNames, encode_blocks, relations_of
from getd.facts.named import NamedFacts
from getd.facts.row_index import RowIndex
from getd.facts.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class _DistinctFacts:
    """The distinct facts of one block."""

    symbols: Ids  # (n, 1 + arity): entities and relations, with no number in common
    signature: Ids  # (n,)
    fact_of_row: Ids  # (rows of the block,)


def split_named(named: NamedFacts, seed: int) -> dict[str, NamedFacts]:
    """Split facts 8:1:1 into train, valid and test, at random by ``seed``; copies stay together.

    Train has every entity and relation of valid and test if possible (:func:`split_rows`).
    """
    if len(named) == 0:
        return {}

    # Number the distinct facts over all blocks: by signature, then in order.
    distinct, n_symbols = _distinct_facts(named)
    signatures = np.concatenate([block.signature for block in distinct])
    n_facts = len(signatures)
    numbers = np.empty(n_facts, dtype=np.int64)
    numbers[np.argsort(signatures, kind="stable")] = np.arange(n_facts)

    members = [block.symbols for block in distinct]
    is_held_out = split_rows(members, n_symbols, seed, 2 * (n_facts // 10), numbers)
    held_out = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(is_held_out))
    split_of = np.zeros(n_facts, dtype=np.int64)
    split_of[held_out[::2]] = SPLITS.index("valid")
    split_of[held_out[1::2]] = SPLITS.index("test")

    splits = {}
    for i, split in enumerate(SPLITS):
        is_in_split = split_of[numbers] == i
        blocks = {}
        start = 0
        for arity, facts in zip(named.blocks, distinct, strict=True):
            rows = is_in_split[start + facts.fact_of_row]
            start += len(facts.signature)
            if rows.any():
                blocks[arity] = named.blocks[arity].take(rows)
        if blocks:
            splits[split] = replace(named.with_blocks(blocks), notices=())
    return splits


def _distinct_facts(named: NamedFacts) -> tuple[list[_DistinctFacts], int]:
    """The distinct facts of each block, and the number of symbols."""
    relations = sorted(relations_of([named]))
    relation_ids = {relation: number for number, relation in enumerate(relations)}
    names = EntityNames.of(named)
    entities = Vocabulary(names.names)
    n_symbols = len(entities) + len(relations)

    blocks = []
    for block, facts in encode_blocks(named, names, entities, relation_ids):
        signature = block.signature.astype(np.int64)
        rows = np.column_stack([signature, facts.relation + len(entities), facts.entities])
        sizes = [len(named.signatures), *[n_symbols] * (1 + facts.arity)]
        index, numbers = RowIndex.build(list(rows.T), sizes)
        distinct = np.empty((len(index), rows.shape[1]), dtype=np.int64)
        distinct[numbers] = rows
        blocks.append(_DistinctFacts(distinct[:, 1:], distinct[:, 0], numbers))
    return blocks, n_symbols


def split_rows(
    members: Sequence[Ids],
    n_symbols: int,
    seed: int,
    held_out: int,
    numbers: Ids | None = None,
) -> Bools:
    """Choose facts to hold out at random, so that the rest still has every symbol if possible.

    Parameters
    ----------
    members
        Blocks ``(n, k)`` of symbols (entities and relations, with no number in common).
    n_symbols
        The number of symbols.
    held_out
        The number of facts to choose; if covering every symbol leaves too few, the rest is random.
    numbers
        The number of each fact, block by block; by default they are counted.

    Returns
    -------
    A mask over the facts, by their numbers.

    Notes
    -----
    This does in rounds what one would do fact by fact: go through the facts in random order and
    take each whose symbols all stay in other facts. In a round, of a symbol with ``c`` facts left
    the first ``c - 1`` candidates may go.
    """
    n_facts = sum(len(block) for block in members)
    facts, symbols = _pairs(members)
    if numbers is not None:
        facts = numbers[facts]
    rank = np.random.default_rng(seed).permutation(n_facts)

    chosen = np.zeros(n_facts, dtype=bool)
    is_candidate = np.ones(n_facts, dtype=bool)
    n_left = np.bincount(symbols, minlength=n_symbols)
    while chosen.sum() < held_out and is_candidate.any():
        # A fact that is the last one of a symbol stays.
        is_candidate[facts[n_left[symbols] < 2]] = False

        # A fact may go if it comes early enough for each of its symbols.
        pairs = is_candidate[facts]
        own_facts = facts[pairs]
        own_symbols = symbols[pairs]
        is_late = _index_in_group(own_symbols, rank[own_facts]) >= n_left[own_symbols] - 1
        may_go = is_candidate.copy()
        may_go[own_facts[is_late]] = False

        going = np.flatnonzero(may_go)
        going = going[np.argsort(rank[going])][: held_out - int(chosen.sum())]
        chosen[going] = True
        is_candidate[going] = False
        n_left -= np.bincount(symbols[np.isin(facts, going)], minlength=n_symbols)

    rest = np.flatnonzero(~chosen)
    chosen[rest[np.argsort(-rank[rest])][: held_out - int(chosen.sum())]] = True
    return chosen


def _pairs(members: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Facts, counted through all blocks, and their symbols, each pair once."""
    facts = []
    symbols = []
    start = 0
    for block in members:
        ordered = np.sort(block, axis=1)
        is_new = np.diff(ordered, axis=1, prepend=-1) != 0
        facts.append(start + np.nonzero(is_new)[0])
        symbols.append(ordered[is_new])
        start += len(block)
    return np.concatenate(facts), np.concatenate(symbols)


def _index_in_group(groups: Ids, rank: Ids) -> Ids:
    """The index of each element among those of its group, ordered by rank."""
    order = np.lexsort((rank, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    index = np.empty(len(groups), dtype=np.int64)
    index[order] = expand_spans(np.zeros_like(sizes), sizes)
    return index

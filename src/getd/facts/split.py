"""Split one file of facts into train, valid and test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from getd.arrays import Bools, Ids, expand_spans
from getd.facts.encode import encode_blocks, relations_of, used_entities
from getd.facts.named import NamedFacts
from getd.facts.row_index import RowIndex
from getd.facts.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class _DistinctFacts:
    symbols: Ids  # (n, 1 + arity): entities and relations, with no number in common
    signature: Ids  # (n,)
    fact_of_row: Ids  # (rows of the block,): the distinct fact, counted through all blocks


def split_named(named: NamedFacts, seed: int) -> dict[str, NamedFacts]:
    """Split facts 8:1:1 into train, valid and test, at random by ``seed``; copies stay together.

    Train has every entity and relation of valid and test if possible (:func:`split_rows`).
    """
    if len(named) == 0:
        return {}

    # Number the distinct facts over all blocks: by signature, then in order.
    distinct = _distinct_facts(named)
    signatures = np.concatenate([block.signature for block in distinct])
    n_facts = len(signatures)
    order = np.argsort(signatures, kind="stable")
    numbers = np.argsort(order)  # the inverse

    members = [block.symbols for block in distinct]
    is_held_out = split_rows(members, numbers, seed, 2 * (n_facts // 10))
    held_out = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(is_held_out))
    split_of = np.zeros_like(numbers)
    split_of[held_out[::2]] = SPLITS.index("valid")
    split_of[held_out[1::2]] = SPLITS.index("test")

    splits = {}
    for i, split in enumerate(SPLITS):
        is_in_split = split_of[numbers] == i
        blocks = {}
        for (arity, block), facts in zip(named.blocks.items(), distinct, strict=True):
            rows = is_in_split[facts.fact_of_row]
            if rows.any():
                blocks[arity] = block.take(rows)
        if blocks:
            splits[split] = replace(named, blocks=blocks, notices=())
    return splits


def _distinct_facts(named: NamedFacts) -> list[_DistinctFacts]:
    relations = sorted(relations_of([named]))
    relation_ids = {relation: number for number, relation in enumerate(relations)}
    entities = Vocabulary(named.entities.gather(used_entities(named)))

    blocks = []
    start = 0
    for block, facts in encode_blocks(named, entities, relation_ids):
        rows = np.column_stack([block.signature, facts.relation + len(entities), facts.entities])
        _, numbers = RowIndex.build(list(rows.T))
        _, first = np.unique(numbers, return_index=True)
        distinct = rows[first]
        blocks.append(_DistinctFacts(distinct[:, 1:], distinct[:, 0], start + numbers))
        start += len(distinct)
    return blocks


def split_rows(members: Sequence[Ids], numbers: Ids, seed: int, held_out: int) -> Bools:
    """Choose facts to hold out at random, so that the rest still has every symbol if possible.

    ``members`` are blocks ``(n, k)`` of symbols (entities and relations, with no number in common),
    ``numbers`` the numbers of their facts, block by block. If covering every symbol leaves fewer
    than ``held_out`` facts, the rest is random. Returns a mask over the facts, by their numbers.

    This does in rounds what one would do fact by fact: go through the facts in random order and
    take each whose symbols all stay in other facts. In a round, of a symbol with ``c`` facts left
    the first ``c - 1`` candidates may go.
    """
    n_facts = len(numbers)
    indices, symbols = _pairs(members)
    facts = numbers[indices]
    rank = np.random.default_rng(seed).permutation(n_facts)

    chosen = np.zeros(n_facts, dtype=bool)
    is_candidate = np.ones(n_facts, dtype=bool)
    n_left = np.bincount(symbols)
    n_missing = held_out
    while n_missing and is_candidate.any():
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
        going = going[np.argsort(rank[going])][:n_missing]
        n_missing -= len(going)
        chosen[going] = True
        is_candidate[going] = False
        n_left -= np.bincount(symbols[np.isin(facts, going)], minlength=len(n_left))

    rest = np.flatnonzero(~chosen)
    chosen[rest[np.argsort(-rank[rest])][:n_missing]] = True
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
    index = np.empty_like(order)
    index[order] = expand_spans(np.zeros_like(sizes), sizes)
    return index

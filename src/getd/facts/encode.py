"""Named facts to integers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from getd.arrays import Ids, mark
from getd.facts.facts import Blocks, Facts
from getd.facts.named import Block, NamedFacts
from getd.facts.relation import Relation
from getd.facts.row_index import RowIndex, may_repeat
from getd.facts.vocabulary import Vocabulary

RelationIds = Mapping[Relation, int]


@dataclass(frozen=True)
class Duplicates:
    """Facts that occurred more than once in a split; only the first of each was kept."""

    repeated: int = 0  # exact copies
    reordered: int = 0  # copies with their qualifiers in another order

    @property
    def total(self) -> int:
        """All facts that were dropped."""
        return self.repeated + self.reordered


def relations_of(parts: Iterable[NamedFacts]) -> set[Relation]:
    """Every relation, name and roles, of these facts."""
    relations: set[Relation] = set()
    for named in parts:
        for block in named.blocks.values():
            relations.update(block_relations(named, block)[0])
    return relations


def block_relations(named: NamedFacts, block: Block) -> tuple[list[Relation], Ids]:
    """The distinct relations of a block, and the index of each fact's relation among them."""
    n_signatures = len(named.signatures)
    pairs, inverse = distinct(block.relation.astype(np.int64) * n_signatures + block.signature)
    names = named.relations.gather(pairs // n_signatures).to_list()
    signatures = (pairs % n_signatures).tolist()

    relations = []
    for name, signature in zip(names, signatures, strict=True):
        relations.append(Relation(name, named.signatures[signature]))
    return relations, inverse


def distinct(numbers: Ids) -> tuple[Ids, Ids]:
    """``np.unique`` with the inverse; small numbers are not sorted but marked in a table."""
    largest = int(numbers.max(initial=0))
    if largest > 4 * numbers.size + 1000:
        return np.unique(numbers, return_inverse=True)

    is_used = mark(largest + 1, [numbers])
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


def used_entities(named: NamedFacts) -> Ids:
    """The numbers of the entities that named facts use."""
    return np.flatnonzero(
        mark(len(named.entities), (block.entities for block in named.blocks.values()))
    )


def encode_blocks(
    named: NamedFacts, entities: Vocabulary, relations: RelationIds
) -> Iterator[tuple[Block, Facts]]:
    """Each block of named facts with its integers."""
    used = used_entities(named)
    entity_ids = np.zeros(len(named.entities), dtype=np.int64)
    entity_ids[used] = entities.ids(named.entities.gather(used))
    for block in named.blocks.values():
        own_relations, inverse = block_relations(named, block)
        relation_ids = np.array([relations[relation] for relation in own_relations], dtype=np.int64)
        yield block, Facts(relation_ids[inverse], entity_ids[block.entities])


def encode(
    named: NamedFacts, entities: Vocabulary, relations: RelationIds
) -> tuple[Blocks, Duplicates]:
    """Encode a split without duplicates: a block per arity, in the order of the rows."""
    blocks = {}
    repeated = 0
    reordered = 0
    for block, facts in encode_blocks(named, entities, relations):
        blocks[facts.arity], duplicates = _drop_duplicates(facts, block.arrangement)
        repeated += duplicates.repeated
        reordered += duplicates.reordered
    return dict(sorted(blocks.items())), Duplicates(repeated, reordered)


def _drop_duplicates(facts: Facts, arrangement: Ids) -> tuple[Facts, Duplicates]:
    """The distinct facts, in the order of their first appearance, and the duplicates."""
    columns = facts.columns()
    if not may_repeat(columns):
        return facts, Duplicates()
    index, numbers = RowIndex.build(columns)
    _, first = np.unique(numbers, return_index=True)

    # Exact copies agree in their arrangement too.
    arranged, _ = RowIndex.build([numbers, arrangement])
    duplicates = Duplicates(len(facts) - len(arranged), len(arranged) - len(index))
    return facts.take(np.sort(first)), duplicates

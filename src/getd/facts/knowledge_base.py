"""The knowledge base: vocabularies, and facts in splits, a block per arity. Immutable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import polars as pl

from getd.errors import FactError, nearest
from getd.facts.encode import Duplicates, EntityNames, encode, relations_of
from getd.facts.facts import Blocks, Facts
from getd.facts.frames import frame_to_named
from getd.facts.known_answers import KnownAnswers
from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Relation, default_roles, relation_labels
from getd.facts.role_order import RoleOrder
from getd.facts.row_index import RowIndex
from getd.facts.split import SPLITS, split_named
from getd.facts.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """Names, relations with their roles, and facts split into train, valid and test.

    >>> kb = KnowledgeBase.from_facts({"train": [("award", "Jordan", "Bulls"), ("award", "Bird", "Celtics")]})
    >>> kb.n_entities, kb.split("train")[2].entities.tolist()
    (4, [[3, 1], [0, 2]])
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary  # the label of each relation: its name, with its roles where the name alone is not unique
    signatures: tuple[Relation, ...]  # name and roles, by relation id
    splits: Mapping[str, Blocks]  # those of train, valid, test that the data has
    duplicates: Mapping[str, Duplicates]
    notices: tuple[str, ...] = ()  # what a user should be told about the data

    @classmethod
    def from_labels(
        cls, name: str, splits: Mapping[str, NamedFacts], notices: Sequence[str] = ()
    ) -> KnowledgeBase:
        """Encode named facts: every name gets its number, facts that stand twice in a split are dropped and counted."""
        splits = {split: labels for split, labels in splits.items() if len(labels)}
        if not splits:
            raise FactError(f"{name}: expected facts, found none")
        names = {split: EntityNames.of(labels) for split, labels in splits.items()}
        entities = Vocabulary(pl.concat([found.names for found in names.values()]))
        labels_of = relation_labels(relations_of(splits.values()))
        relations = Vocabulary(labels_of.values())
        by_label = {label: relation for relation, label in labels_of.items()}
        ids = {by_label[label]: number for number, label in enumerate(relations)}
        encoded = {
            split: encode(splits[split], names[split], entities, ids)
            for split in SPLITS
            if split in splits
        }
        duplicates = {split: dropped for split, (_, dropped) in encoded.items()}
        kb = cls(
            name=name,
            entities=entities,
            relations=relations,
            signatures=tuple(by_label[label] for label in relations),
            splits=MappingProxyType({split: blocks for split, (blocks, _) in encoded.items()}),
            duplicates=MappingProxyType(duplicates),
        )
        told = [*notices, *_duplicate_notices(duplicates), *_overlap_notices(kb)]
        return replace(kb, notices=tuple(told))

    @classmethod
    def from_facts(
        cls,
        facts: Iterable[Sequence[Any]] | Mapping[str, Iterable[Sequence[Any]]],
        name: str = "facts",
        seed: int = 0,
    ) -> KnowledgeBase:
        """From tuples ``(relation, entity, …)``: a list, split 8:1:1, or one list for each of train, valid, test."""
        return cls._from_parts(facts, lambda part, _: tuples_to_named(part), name, seed)

    @classmethod
    def from_dataframe(
        cls, frame: Any, relation: str = "facts", name: str = "frame", seed: int = 0
    ) -> KnowledgeBase:
        """From a polars, pandas or Arrow table, split 8:1:1, or from one for each of train, valid, test.

        The columns are those of a CSV file: a column ``relation`` and the entities, or roles alone; ``relation`` then
        names them.
        """
        order = RoleOrder()
        return cls._from_parts(
            frame, lambda table, part: frame_to_named(table, part, relation, order), name, seed
        )

    @classmethod
    def _from_parts(cls, given: Any, read: Any, name: str, seed: int) -> KnowledgeBase:
        if not isinstance(given, Mapping):
            return cls.from_labels(
                name, split_named(read(given, "the table"), seed), [split_notice(seed)]
            )
        for split in given:
            if split not in SPLITS:
                raise FactError(
                    f"expected the splits {', '.join(SPLITS)}, found {split!r}{nearest(str(split), SPLITS)}"
                )
        return cls.from_labels(
            name, {split: read(part, f"the {split} table") for split, part in given.items()}
        )

    @property
    def n_entities(self) -> int:
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        return len(self.relations)

    @property
    def arities(self) -> tuple[int, ...]:
        """The arities of all facts, ascending."""
        return tuple(sorted({arity for blocks in self.splits.values() for arity in blocks}))

    @cached_property
    def relations_named(self) -> dict[str, list[int]]:
        """The numbers of the relations of each name: several where relations differ in their roles alone."""
        found: dict[str, list[int]] = {}
        for number, relation in enumerate(self.signatures):
            found.setdefault(relation.name, []).append(number)
        return found

    def split(self, name: str) -> Blocks:
        """The facts of a split; a split that the data has not is refused."""
        if name not in SPLITS:
            raise FactError(
                f"expected one of the splits {', '.join(SPLITS)}, found {name!r}{nearest(name, SPLITS)}"
            )
        if name not in self.splits:
            raise FactError(
                f"{self.name} has no {name} facts: it has {' and '.join(self.splits)} only"
            )
        return self.splits[name]

    def with_splits(self, **splits: Blocks) -> KnowledgeBase:
        """The same names with these facts, and no others, in the splits."""
        return replace(self, splits=MappingProxyType(splits))

    def with_entities(self, entities: Vocabulary, splits: Mapping[str, Blocks]) -> KnowledgeBase:
        """The same relations with other entities, and with facts that are numbered by them."""
        return replace(self, entities=entities, splits=MappingProxyType(dict(splits)))

    def known(self, *splits: str) -> KnownAnswers:
        """The known answers in these splits, all of them where none is named."""
        blocks = [self.split(split) for split in splits] if splits else list(self.splits.values())
        return KnownAnswers.build(blocks, self.n_relations, self.n_entities)

    def decode(self, facts: Facts) -> list[tuple[str, ...]]:
        """Facts as ``(relation label, entity, …)``."""
        columns = [self.relations.decode(facts.relation)]
        columns += [self.entities.decode(facts.entities[:, j]) for j in range(facts.arity)]
        return list(zip(*columns, strict=True))


def tuples_to_named(facts: Iterable[Sequence[Any]]) -> NamedFacts:
    """NamedFacts from tuples ``(relation, entity, …)``; numbers are written as text."""
    builder = NamedFactsBuilder()
    for row, fact in enumerate(facts):
        if isinstance(fact, str) or not isinstance(fact, Sequence) or len(fact) < 2:
            raise FactError(
                f"fact {row}: expected a relation and at least one entity, found {fact!r}"
            )
        for name in fact:
            is_number = (
                isinstance(name, int | float) and not isinstance(name, bool) and math.isfinite(name)
            )
            if not (is_number or isinstance(name, str)) or name == "" or "\0" in str(name):
                raise FactError(f"fact {row}: expected names, found {name!r}")
        relation, *entities = map(str, fact)
        builder.add_row(default_roles(len(entities)), (row, relation, entities, 0))
    return builder.build()


def split_notice(seed: int) -> str:
    """What a user is told where we made the split."""
    return f"no splits given: split 8:1:1 at random with seed {seed}"


def _duplicate_notices(duplicates: Mapping[str, Duplicates]) -> list[str]:
    told = []
    for split, found in duplicates.items():
        if found.total:
            apart = (
                f", {found.reordered:,} of them alike only once qualifiers are ordered"
                if found.reordered
                else ""
            )
            told.append(f"{split}: {found.total:,} duplicate facts dropped{apart}")
    return told


def _overlap_notices(kb: KnowledgeBase) -> list[str]:
    pairs = [(first, second) for first in SPLITS for second in SPLITS[SPLITS.index(first) + 1 :]]
    counted = [(overlap(kb, first, second), first, second) for first, second in pairs]
    return [
        f"{number:,} facts of {second} are in {first} too (kept)"
        for number, first, second in counted
        if number
    ]


def overlap(kb: KnowledgeBase, first: str, second: str) -> int:
    """How many facts of the second split are in the first too."""
    number = 0
    for arity, facts in kb.splits.get(second, {}).items():
        others = kb.splits.get(first, {}).get(arity)
        if others is not None:
            sizes = [kb.n_relations] + [kb.n_entities] * arity
            index, _ = RowIndex.build([others.relation, *others.entities.T], sizes)
            number += int((index.find([facts.relation, *facts.entities.T]) >= 0).sum())
    return number

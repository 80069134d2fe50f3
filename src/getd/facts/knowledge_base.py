"""The knowledge base: vocabularies, and facts in splits, a block per arity. Immutable."""

import html
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import polars as pl

from getd.errors import FactError, nearest
from getd.facts.encode import Duplicates, encode, relations_of, used_entities
from getd.facts.facts import Blocks, Facts, count
from getd.facts.frames import frame_to_named
from getd.facts.known_answers import KnownAnswers
from getd.facts.lone_names import lone_name_notices
from getd.facts.named import NamedFacts, NamedFactsBuilder, is_name
from getd.facts.relation import Relation, default_roles, relation_labels
from getd.facts.role_order import RoleOrder
from getd.facts.row_index import RowIndex
from getd.facts.split import SPLITS, split_named
from getd.facts.vocabulary import Vocabulary
from getd.visible import shorten, visible

MAX_ODD_SHARE = 0.02  # of the facts of a name, that may be an oversight
MAX_ODD_NOTICES = 3
MAX_NAME = 60  # characters of a name in a notice


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """Names, relations with their roles, and facts split into train, valid and test.

    >>> facts = [("award", "Jordan", "Bulls"), ("award", "Bird", "Celtics")]
    >>> kb = KnowledgeBase.from_facts({"train": facts})
    >>> kb
    KnowledgeBase('facts', entities=4, relations=1, train=2)
    >>> kb.split("train")[2].entities.tolist()
    [[3, 1], [0, 2]]
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary  # labels: the name of a relation, with its roles if others share the name
    signatures: tuple[Relation, ...]  # name and roles, by relation id
    splits: Mapping[str, Blocks]  # those of train, valid, test that the data has
    duplicates: Mapping[str, Duplicates]  # by split
    notices: tuple[str, ...] = ()  # messages to the user about the data

    def __post_init__(self) -> None:
        splits = {split: MappingProxyType(dict(blocks)) for split, blocks in self.splits.items()}
        object.__setattr__(self, "splits", MappingProxyType(splits))
        object.__setattr__(self, "duplicates", MappingProxyType(dict(self.duplicates)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled; the constructor makes them again.
        splits = {split: dict(blocks) for split, blocks in self.splits.items()}
        names = (self.name, self.entities, self.relations, self.signatures)
        return KnowledgeBase, (*names, splits, dict(self.duplicates), self.notices)

    def __repr__(self) -> str:
        sizes = f"entities={self.n_entities}, relations={self.n_relations}"
        for split, blocks in self.splits.items():
            sizes += f", {split}={count(blocks)}"
        return f"KnowledgeBase({self.name!r}, {sizes})"

    def _repr_html_(self) -> str:
        """A table of the number of facts by split and arity, for notebooks."""
        arities = "".join(f"<th>{arity}-ary</th>" for arity in self.arities)
        rows = f"<tr><th>facts</th>{arities}<th>all</th></tr>"
        for split, blocks in self.splits.items():
            counts = [len(blocks.get(arity, ())) for arity in self.arities]
            cells = "".join(f"<td>{number:,}</td>" for number in [*counts, sum(counts)])
            rows += f"<tr><th>{html.escape(split)}</th>{cells}</tr>"

        sizes = f"entities: {self.n_entities:,}, relations: {self.n_relations:,}"
        caption = f"{html.escape(visible(self.name))} ({sizes})"
        return f"<table><caption>{caption}</caption>{rows}</table>"

    @classmethod
    def from_named(
        cls, name: str, splits: Mapping[str, NamedFacts], notices: Sequence[str] = ()
    ) -> Self:
        """Encode named facts; facts that a split repeats are dropped and counted."""
        splits = {split: named for split, named in splits.items() if len(named)}
        if not splits:
            raise FactError(f"{name}: expected facts, found none")

        names = [named.entities.gather(used_entities(named)) for named in splits.values()]
        entities = Vocabulary(pl.concat(names))
        labels = relation_labels(relations_of(splits.values()))
        relations = Vocabulary(labels.values())
        signatures = tuple(sorted(labels, key=labels.__getitem__))
        relation_ids = {relation: number for number, relation in enumerate(signatures)}

        blocks = {}
        duplicates = {}
        for split in SPLITS:
            if split in splits:
                encoded = encode(splits[split], entities, relation_ids)
                blocks[split], duplicates[split] = encoded

        kb = cls(name, entities, relations, signatures, blocks, duplicates)
        facts = [block for split_blocks in blocks.values() for block in split_blocks.values()]
        about = [*_duplicate_notices(kb), *_overlap_notices(kb), *_odd_arity_notices(kb)]
        about += lone_name_notices(signatures, facts)
        return replace(kb, notices=(*notices, *about))

    @classmethod
    def from_facts(
        cls,
        facts: Iterable[Sequence[Any]] | Mapping[str, Iterable[Sequence[Any]]],
        name: str = "facts",
        seed: int = 0,
    ) -> Self:
        """From tuples ``(relation, entity, …)``.

        Either one list, which is split 8:1:1, or one list for each of train, valid and test.
        """
        return cls._from_parts(facts, lambda part, _: tuples_to_named(part), name, seed)

    @classmethod
    def from_dataframe(
        cls, frame: Any, relation: str = "facts", name: str = "frame", seed: int = 0
    ) -> Self:
        """From a polars, pandas or Arrow table, split 8:1:1, or one for each split.

        The columns are those of a CSV file: a column ``relation`` and the entities, or only roles;
        then ``relation`` is the name of the relation.
        """
        order = RoleOrder()
        return cls._from_parts(
            frame, lambda table, part: frame_to_named(table, part, relation, order), name, seed
        )

    @classmethod
    def _from_parts(
        cls, source: Any, read: Callable[[Any, str], NamedFacts], name: str, seed: int
    ) -> Self:
        if not isinstance(source, Mapping):
            named = read(source, "the table")
            notices = [*named.notices, split_notice(seed)]
            return cls.from_named(name, split_named(named, seed), notices)

        for split in source:
            if split not in SPLITS:
                hint = nearest(str(split), SPLITS)
                raise FactError(f"expected the splits {', '.join(SPLITS)}, found {split!r}{hint}")
        splits = {split: read(part, f"the {split} table") for split, part in source.items()}
        notices = [notice for named in splits.values() for notice in named.notices]
        return cls.from_named(name, splits, notices)

    @property
    def n_entities(self) -> int:
        return len(self.entities)

    @property
    def only_relation(self) -> str:
        """The label of the only relation, which nobody has to name."""
        if self.n_relations > 1:
            raise FactError(f"expected the name of a relation, as there are {self.n_relations:,}")
        return self.relations.decode([0])[0]

    @property
    def n_relations(self) -> int:
        return len(self.relations)

    @property
    def arities(self) -> tuple[int, ...]:
        """The arities of all facts, ascending."""
        return tuple(sorted({arity for blocks in self.splits.values() for arity in blocks}))

    @cached_property
    def relations_named(self) -> dict[str, list[int]]:
        """The ids of the relations of each name: several if they differ only in their roles."""
        ids: dict[str, list[int]] = {}
        for number, relation in enumerate(self.signatures):
            ids.setdefault(relation.name, []).append(number)
        return ids

    def split(self, name: str) -> Blocks:
        """The facts of a split; a split that the data does not have is refused."""
        if name not in SPLITS:
            hint = nearest(name, SPLITS)
            raise FactError(f"expected one of the splits {', '.join(SPLITS)}, found {name!r}{hint}")
        if name not in self.splits:
            present = " and ".join(self.splits)
            raise FactError(f"{self.name} has no {name} facts: it has {present} only")
        return self.splits[name]

    def require(self, *splits: str) -> None:
        """Raise if the data does not have these splits."""
        for split in splits:
            self.split(split)

    def with_splits(self, **splits: Blocks) -> Self:
        """Keep the names, replace the facts of all splits."""
        return replace(self, splits=splits)

    def known(self, *splits: str) -> KnownAnswers:
        """The known answers in these splits; in all splits if none is named."""
        blocks = [self.split(split) for split in splits or self.splits]
        return KnownAnswers.build(blocks)

    def decode(self, facts: Facts) -> list[tuple[str, ...]]:
        """Facts as ``(relation label, entity, …)``."""
        columns = [self.relations.decode(facts.relation)]
        columns += [self.entities.decode(column) for column in facts.entities.T]
        return list(zip(*columns, strict=True))


def tuples_to_named(facts: Iterable[Sequence[Any]]) -> NamedFacts:
    """Named facts from tuples ``(relation, entity, …)``; numbers become text."""
    if isinstance(facts, str) or not isinstance(facts, Iterable):
        raise FactError(f"expected tuples of a relation and entities, found {facts!r}")
    builder = NamedFactsBuilder()
    for row, fact in enumerate(facts):
        if isinstance(fact, str) or not isinstance(fact, Sequence) or len(fact) < 2:
            expected = "a relation and at least one entity"
            raise FactError(f"fact {row}: expected {expected}, found {fact!r}")
        for name in fact:
            if not is_name(name):
                raise FactError(f"fact {row}: expected names, found {name!r}")

        relation, *entities = map(str, fact)
        builder.add_row(row, relation, default_roles(len(entities)), entities)
    return builder.build()


def split_notice(seed: int) -> str:
    """The notice about facts that were split here, because the data has no splits."""
    return f"no splits given: split 8:1:1 at random with seed {seed}"


def _duplicate_notices(kb: KnowledgeBase) -> list[str]:
    notices = []
    for split, dropped in kb.duplicates.items():
        if dropped.total:
            notice = f"{split}: {dropped.total:,} duplicate facts dropped"
            if dropped.reordered:
                notice += f", {dropped.reordered:,} of them with qualifiers in another order"
            notices.append(notice)

    n_dropped = sum(dropped.total for dropped in kb.duplicates.values())
    n_kept = sum(count(blocks) for blocks in kb.splits.values())
    if n_dropped > n_kept:
        notices.append(
            f"only {n_kept:,} of {n_kept + n_dropped:,} rows are left: each fact counts once, "
            "so how often it occurs is not learnt"
        )
    return notices


def _overlap_notices(kb: KnowledgeBase) -> list[str]:
    notices = []
    for first, second in combinations(SPLITS, 2):
        number = overlap(kb, first, second)
        if number:
            notices.append(f"{number:,} facts of {second} are in {first} too (kept)")
    return notices


def overlap(kb: KnowledgeBase, first: str, second: str) -> int:
    """Count the facts of the second split that are in the first too."""
    number = 0
    first_blocks = kb.splits.get(first, {})
    for arity, facts in kb.splits.get(second, {}).items():
        if arity in first_blocks:
            index, _ = RowIndex.build(first_blocks[arity].columns())
            number += int((index.find(facts.columns()) >= 0).sum())
    return number


def _odd_arity_notices(kb: KnowledgeBase) -> list[str]:
    """Tell of relations whose facts nearly all have one arity: the others may have lost a cell.

    Facts whose roles are named are meant to differ.
    """
    totals = np.zeros(len(kb.signatures), dtype=np.int64)
    for blocks in kb.splits.values():
        for facts in blocks.values():
            totals += np.bincount(facts.relation, minlength=len(totals))

    counts: dict[str, Counter[int]] = {}
    for relation, total in zip(kb.signatures, totals.tolist(), strict=True):
        if not relation.has_named_roles:
            counts.setdefault(relation.name, Counter())[relation.arity] += total

    notices = []
    for name, by_arity in counts.items():
        (usual, n_usual), *odd = by_arity.most_common()
        n_odd = sum(number for _, number in odd)
        if 0 < n_odd <= MAX_ODD_SHARE * (n_usual + n_odd):
            noun = "fact" if n_odd == 1 else "facts"
            subject = f"{n_odd:,} {noun} of {shorten(name, MAX_NAME)}"
            arities = " or ".join(map(str, sorted(arity for arity, _ in odd)))
            others = f"all {n_usual:,} others with {usual}"
            notices.append(f"{subject} with {arities} entities, {others}: a lost cell?")

    if len(notices) > MAX_ODD_NOTICES:
        more = len(notices) - MAX_ODD_NOTICES
        notices[MAX_ODD_NOTICES:] = [f"{more:,} more relations have a few facts of another arity"]
    return notices

"""Breakdowns: the questions of facts in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from getd.arrays import Bools, Ids
from getd.choices import Grouping
from getd.errors import ConfigError, nearest
from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.known_answers import KnownAnswers

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each question; questions are in the order of arity, fact and position."""

    number: Ids  # (q,)
    names: Sequence[str]  # by number

    def masks(self) -> Iterator[tuple[str, Bools]]:
        """Yield the name of each group that has questions, and which questions it has."""
        for number in np.unique(self.number).tolist():
            yield self.names[number], self.number == number


def group_questions(
    grouping: str, blocks: Blocks, kb: KnowledgeBase, trained_on: Sequence[str]
) -> Groups:
    """Group the questions of facts; a question is *seen* if a fact trained on answers it too."""
    names: Sequence[str]
    if grouping == "relation":
        numbers = [facts.relation[:, None] for facts in blocks.values()]
        names = list(kb.relations)
    elif grouping == "seen":
        known = kb.known(*trained_on)
        numbers = [_is_seen(facts, known) for facts in blocks.values()]
        names = ["unseen", "seen"]
    else:
        by_position = grouping == "position"
        numbers = [np.arange(n)[None] if by_position else np.array([[n]]) for n in blocks]
        names = [str(number) for number in range(max(blocks) + 1)]

    parts = []
    for number, facts in zip(numbers, blocks.values(), strict=True):
        parts.append(np.broadcast_to(number, facts.entities.shape).reshape(-1))
    return Groups(np.concatenate(parts), names)


def check_groupings(by: Sequence[str]) -> None:
    """Reject an unknown breakdown."""
    for grouping in by:
        if grouping not in GROUPINGS:
            expected = ", ".join(GROUPINGS)
            hint = nearest(grouping, GROUPINGS)
            raise ConfigError(f"by: expected one of {expected}, found {grouping!r}{hint}")


def _is_seen(facts: Facts, known: KnownAnswers) -> Ids:
    """Return whether each question of facts has a known answer, ``(n, arity)``: 0 or 1."""
    seen = []
    for position in range(facts.arity):
        seen.append(known.is_known(facts.relation, facts.entities, position))
    return np.column_stack(seen).astype(np.int64)

"""Breakdowns: the questions of facts in groups."""

from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np

from getd.arrays import Bools, Ids
from getd.choices import Grouping
from getd.facts.facts import Blocks
from getd.facts.knowledge_base import KnowledgeBase

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)


def group_questions(
    grouping: str, blocks: Blocks, kb: KnowledgeBase, trained_on: Sequence[str]
) -> Iterator[tuple[str, Bools]]:
    """Yield the name of each group of questions, and which questions of facts it has.

    Questions are in the order of arity, fact and position. A question is *seen* if a fact trained
    on answers it too.
    """
    names: Sequence[str] = [str(number) for number in range(max(blocks) + 1)]
    if grouping == "relation":
        names = list(kb.relations)
    elif grouping == "seen":
        names = ["unseen", "seen"]
        known = kb.known(*trained_on)

    parts = []
    for arity, facts in blocks.items():
        number: Ids | Bools = np.array(arity)
        if grouping == "relation":
            number = facts.relation[:, None]
        elif grouping == "position":
            number = np.arange(arity)
        elif grouping == "seen":
            given = (facts.relation, facts.entities)
            number = np.column_stack([known.is_known(*given, j) for j in range(arity)])
        parts.append(np.broadcast_to(number, facts.entities.shape).reshape(-1))

    numbers = np.concatenate(parts)
    for group in np.unique(numbers).tolist():
        yield names[group], numbers == group

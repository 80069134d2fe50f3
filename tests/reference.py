"""Slow, obvious versions of what the package computes, written as nested loops over plain Python
values.
"""

from __future__ import annotations

Fact = tuple[str | int, ...]  # relation, then the entities


def known_answers(facts: list[Fact], question: Fact, slot: int) -> list[str | int]:
    """What fills ``slot`` (0: the relation) so that a fact comes out; the question's own value
    there is not read.
    """
    answers = set()
    for fact in facts:
        if len(fact) == len(question) and all(
            fact[i] == question[i] for i in range(len(fact)) if i != slot
        ):
            answers.add(fact[slot])
    return sorted(answers)


def key_seen(train: list[Fact], test: list[Fact]) -> float:
    """The share of test questions that train answers too."""
    seen = [bool(known_answers(train, fact, slot)) for fact in test for slot in range(1, len(fact))]
    return sum(seen) / len(seen)


def shares_all_but(train: list[Fact], fact: Fact, number: int) -> bool:
    """Whether a training fact has the same relation and, in their places, the same entities but for
    ``number``.
    """
    return any(
        len(other) == len(fact)
        and other[0] == fact[0]
        and sum(a != b for a, b in zip(other, fact, strict=True)) <= number
        for other in train
    )

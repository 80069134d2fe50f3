"""Small knowledge bases that are hard to train on: few relations, and arities with few facts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from getd.datasets.load import load
from getd.facts.knowledge_base import KnowledgeBase

DAYS = 90
SHIFTS = ("early", "late", "night")
WARDS = 12
GRADES = 6
NURSES = 120


def plays_for(seed: int = 0) -> KnowledgeBase:
    """One relation of the demo alone: a relation that tells nothing."""
    demo = load("demo")
    facts = []
    for split in demo.splits.values():
        for block in split.values():
            facts += [fact for fact in demo.decode(block) if fact[0] == "plays for"]
    return KnowledgeBase.from_facts(facts, name="plays-for", seed=seed)


def hospital(seed: int = 0) -> KnowledgeBase:
    """A third of the facts binary, about a hundred 4-ary, most 5-ary, and five relations."""
    facts = hospital_facts(np.random.default_rng(seed))
    return KnowledgeBase.from_facts(facts, name="hospital", seed=seed)


def hospital_facts(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the facts of :func:`hospital`.

    A nurse belongs to a ward and changes the shift every week; ward and shift determine who
    supervises.
    """
    ward = rng.integers(0, WARDS, NURSES)
    first_shift = rng.integers(0, len(SHIFTS), NURSES)
    facts: set[tuple[str, ...]] = set()

    for number in rng.permutation(NURSES * DAYS)[:2600]:
        day, nurse = divmod(int(number), NURSES)
        shift = (first_shift[nurse] + day // 7) % len(SHIFTS)
        where = ward[nurse] if rng.random() < 0.9 else rng.integers(0, WARDS)
        supervisor = f"sister {where * len(SHIFTS) + shift}"
        names = (f"nurse {nurse}", f"ward {where}", f"day {day}", SHIFTS[shift], supervisor)
        facts.add(("shift", *names))

    for nurse in range(NURSES):
        name = f"nurse {nurse}"
        grade = (ward[nurse] + first_shift[nurse]) % GRADES
        facts.add(("grade", name, f"grade {grade}"))
        facts.add(("works in", name, f"ward {ward[nurse]}"))
        for other in np.flatnonzero(ward == ward[nurse]):
            facts.add(("knows", name, f"nurse {other}"))

    for patient in range(110):
        where = rng.integers(0, WARDS)
        doctor = where * 2 + rng.integers(0, 2)
        day = rng.integers(0, DAYS)
        admission = (f"patient {patient % 80}", f"ward {where}", f"doctor {doctor}", f"day {day}")
        facts.add(("admission", *admission))
    return sorted(facts)


def three_relations(seed: int = 1) -> KnowledgeBase:
    """One relation per arity: 800 facts of two entities, 100 of four, 1,700 of five."""
    facts = three_relations_facts(np.random.default_rng(seed))
    return KnowledgeBase.from_facts(facts, name="three-relations", seed=seed)


def three_relations_facts(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the facts of :func:`three_relations`."""
    kind_a = rng.integers(0, 8, 200)
    kind_b = rng.integers(0, 8, 40)

    def of() -> tuple[str, ...]:
        a = rng.integers(0, 200)
        return ("of", f"a{a}", f"b{rng.choice(np.flatnonzero(kind_b == kind_a[a]))}")

    def admits() -> tuple[str, ...]:
        a = rng.integers(0, 200)
        return ("admits", f"a{a}", f"c{kind_a[a]}", f"d{kind_a[a]}", f"b{rng.integers(0, 40)}")

    def joins() -> tuple[str, ...]:
        a = rng.integers(0, 200)
        b = rng.integers(0, 40)
        c = (kind_a[a] * 3 + kind_b[b]) % 30
        d = (kind_a[a] + kind_b[b]) % 10
        return ("joins", f"a{a}", f"b{b}", f"c{c}", f"d{d}", f"a{(a * 7 + c) % 200}")

    return sorted(_distinct(of, 800) | _distinct(admits, 100) | _distinct(joins, 1700))


def _distinct(draw: Callable[[], tuple[str, ...]], number: int) -> set[tuple[str, ...]]:
    facts: set[tuple[str, ...]] = set()
    for _ in range(100 * number):
        facts.add(draw())
        if len(facts) == number:
            break
    return facts


WORLDS = {"plays-for": plays_for, "hospital": hospital, "three-relations": three_relations}


def world(name: str) -> KnowledgeBase:
    """Return a world of this module, or a data set by its name."""
    return WORLDS[name]() if name in WORLDS else load(name)

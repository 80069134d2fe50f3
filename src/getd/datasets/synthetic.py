"""Synthetic10: the paper's toy data, a knowledge base whose 0/1 tensor has CP rank one."""

from itertools import product

import numpy as np

# The numbers of relations and of entities at each position; their product is that of facts.
SYNTHETIC = {"Synthetic10-3": (2, 5, 5, 10), "Synthetic10-4": (2, 5, 5, 5, 6)}
N_ENTITIES = 10


def synthetic_facts(name: str, seed: int = 0) -> dict[str, list[tuple[str, ...]]]:
    """Generate Synthetic10-3 (500 facts) or Synthetic10-4 (1,500 facts), split 8:1:1.

    The tensor is an outer product of 0/1 vectors, one for the relation and one for each position,
    with random supports of the sizes in ``SYNTHETIC``. A full support (the last position of
    Synthetic10-3) makes that position trivial: every entity answers it.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    n_relations, *sizes = SYNTHETIC[name]

    # Draw until every entity takes part.
    supports: list[list[int]] = []
    while len(set().union(*supports)) < N_ENTITIES:
        supports = [sorted(rng.choice(N_ENTITIES, size, replace=False).tolist()) for size in sizes]

    facts = []
    for relation, *entities in product(range(n_relations), *supports):
        facts.append((f"r{relation}", *(f"entity{entity}" for entity in entities)))
    rng.shuffle(facts)

    tenth = len(facts) // 10
    return {
        "train": facts[: 8 * tenth],
        "valid": facts[8 * tenth : 9 * tenth],
        "test": facts[9 * tenth :],
    }

"""Roles whose names hardly ever come again, such as a column of ids."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from getd.arrays import Ids
from getd.facts.facts import Facts
from getd.facts.relation import Relation
from getd.visible import shorten

MIN_FACTS = 20  # of a relation whose roles are looked at
MIN_LONE = 0.9  # of the names of a role that the data has once
MAX_LISTED = 150  # characters of a notice


def lone_name_notices(signatures: Sequence[Relation], blocks: Sequence[Facts]) -> list[str]:
    """Name the roles in which nearly every fact has a name that no other fact of the data has."""
    roles = [
        f"{signatures[relation].roles[position]!r} of {signatures[relation].name}"
        for relation, position in _lone_positions(signatures, blocks)
    ]
    if not roles:
        return []
    names = shorten(", ".join(roles), MAX_LISTED)
    return [f"nearly every fact has a name of its own in {names}: little can be learnt about it"]


def _lone_positions(
    signatures: Sequence[Relation], blocks: Sequence[Facts]
) -> Iterator[tuple[int, int]]:
    uses = _add_up(np.bincount(facts.entities.ravel()) for facts in blocks)
    totals = _add_up(np.bincount(facts.relation) for facts in blocks)
    counted = [
        relation
        for relation in np.flatnonzero(totals >= MIN_FACTS).tolist()
        if signatures[relation].has_named_roles
    ]

    n_lone = {relation: np.zeros(signatures[relation].arity) for relation in counted}
    for facts in blocks:
        is_lone = uses[facts.entities] == 1
        order = np.argsort(facts.relation, kind="stable")
        relations, starts = np.unique(facts.relation[order], return_index=True)
        for relation, rows in zip(relations.tolist(), np.split(order, starts[1:]), strict=True):
            if relation in n_lone:
                n_lone[relation] += is_lone[rows].sum(axis=0)

    for relation in counted:
        for position in np.flatnonzero(n_lone[relation] >= MIN_LONE * totals[relation]).tolist():
            yield relation, position


def _add_up(counts: Iterable[Ids]) -> Ids:
    """The sum of counts of different lengths."""
    parts = list(counts)
    total = np.zeros(max(map(len, parts)), dtype=np.int64)
    for part in parts:
        total[: len(part)] += part
    return total

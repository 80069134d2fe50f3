"""``getd info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from getd.cli.options import Json, Reading
from getd.cli.output import (
    cell,
    console,
    download_progress,
    print_json,
    print_line,
    print_notices,
    print_table,
)

if TYPE_CHECKING:
    from getd.facts.knowledge_base import KnowledgeBase
    from getd.profile.describe import Report

_SHOWN = 20  # relations in the table, and roles of each; --json has all


def info(
    data: str,
    /,
    *,
    baselines: Annotated[
        bool,
        Parameter(
            help="Also report the frequency and lookup baselines.", negative="", alias="--floors"
        ),
    ] = False,
    reading: Reading | None = None,
    json: Json = False,
) -> None:
    """Report what a data set holds: counts per split, arity, relation and role, duplicates, unseen entities, leakage.

    Parameters
    ----------
    data
        A folder with train, valid and test, a single file, or the name of a data set (see: getd datasets).
    """
    from getd.datasets.load import load
    from getd.profile.describe import describe

    with download_progress() as progress:
        kb = load(data, progress=progress, **(reading or Reading()).settings())
    report = describe(kb)
    print_notices(report.notices)
    beside = _baselines(kb) if baselines else {}
    if json:
        print_json(report.as_dict() | ({"baselines": beside} if baselines else {}))
        return
    _show(report)
    if baselines:
        keys = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")
        rows = [
            [f"baseline: {name}", *(found[key] for key in keys)] for name, found in beside.items()
        ]
        print_table(
            "Baselines, ranked on test, filtered", ["", "MRR", "Hits@1", "Hits@3", "Hits@10"], rows
        )


def _baselines(kb: KnowledgeBase) -> dict[str, Any]:
    from getd.evaluation.evaluate import evaluate_baselines

    kb.require("test")
    return {name: found.as_dict() for name, found in evaluate_baselines(kb).items()}


def _show(report: Report) -> None:
    named = (
        "" if report.relation_names == report.relations else f" ({report.relation_names:,} names)"
    )
    print_line(
        f"{report.name}: {report.entities:,} entities, {report.relations:,} relations{named}"
    )
    print()
    arities = sorted(report.arities)
    print_table(
        "Splits",
        [
            "split",
            "facts",
            *(f"arity {n}" for n in arities[:8]),
            "entities",
            "relations",
            "unseen entities",
            "duplicates",
            "with literals",
        ],
        [
            [
                name,
                split.facts,
                *(split.arities.get(n, 0) for n in arities[:8]),
                split.entities,
                split.relations,
                split.unseen_entities,
                split.duplicates,
                split.literal_facts,
            ]
            for name, split in report.splits.items()
        ],
    )
    rows = [
        [str(n), found.facts, found.relations, found.entities, found.density]
        for n, found in report.arities.items()
    ]
    print_table("Arities", ["arity", "facts", "relations", "entities", "density"], rows)
    _show_relations(report)
    _show_leakage(report)


def _show_relations(report: Report) -> None:
    largest = sorted(report.by_relation.items(), key=lambda item: -sum(item[1].facts.values()))
    more = f", the {_SHOWN} largest of {len(largest):,}" if len(largest) > _SHOWN else ""
    rows = [
        [
            name,
            ", ".join(f"{role} {number:,}" for role, number in found.roles[:_SHOWN])
            + f", … ({len(found.roles):,} roles)" * (len(found.roles) > _SHOWN),
            sum(found.facts.values()),
            found.density,
        ]
        for name, found in largest[:_SHOWN]
    ]
    print_table(
        f"Relations{more}",
        ["relation", "roles and their entities", "facts", "density"],
        rows,
        left=2,
    )


def _show_leakage(report: Report) -> None:
    shares = [f"{share:.1%} {kind}" for kind, share in report.literals.items()]
    console().print(f"Literals among the entities: {', '.join(shares)}\n")
    if report.leakage is None:
        console().print(
            "Leakage: not measured, there are no train and test (or valid) facts to compare"
        )
        return
    found = report.leakage
    rows: list[list[object]] = [
        ["questions whose key is in train (key_seen)", found.key_seen],
        *([f"    position {p}", share] for p, share in enumerate(found.key_seen_by_position[:8])),
        ["facts that share all entities but one with a training fact", found.all_but_one],
        ["facts that share all entities but two with a training fact", found.all_but_two],
        ["facts with the same entities as a training fact, in any order", found.same_entities],
        ["facts with an entity unseen in train", found.unseen_entity_facts],
    ]
    print_table(
        f"Leakage of {found.split} ({cell(found.questions)} questions)", ["what", "share"], rows
    )

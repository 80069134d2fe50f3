"""``getd info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from getd.cli.inputs import load_data
from getd.cli.options import Data, Json, Reading, flag
from getd.cli.output import print_json, print_line, print_table
from getd.cli.reports import METRICS

if TYPE_CHECKING:
    from getd.profile.describe import Report
    from getd.profile.leakage import Leakage

MAX_ROWS = 20  # relations in the table, and roles of each; --json has all
MAX_COLUMNS = 8  # arities or positions


def info(
    data: Data,
    /,
    *,
    baselines: Annotated[  # --floors is its old name
        bool, flag("Also report the frequency and lookup baselines.", alias="--floors")
    ] = False,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """Describe a data set: counts, duplicates, unseen entities, leakage."""
    from getd.api import describe

    report = describe(load_data(data, reading), baselines=baselines)
    if json:
        print_json(report.as_dict())
        return

    relations = f"{report.relations:,} relations"
    if report.relation_names != report.relations:
        relations += f" ({report.relation_names:,} names)"
    print_line(f"{report.name}: {report.entities:,} entities, {relations}")
    print_line()

    _show_splits(report)
    _show_relations(report)
    literals = ", ".join(f"{share:.1%} {kind}" for kind, share in report.literals.items())
    print_line(f"Literals among the entities: {literals}")
    print_line()
    _show_leakage(report.leakage)
    if report.baselines is not None:
        rows = []
        for name, metrics in report.baselines.items():
            rows.append([f"baseline: {name}", *map(metrics.get, METRICS)])
        print_table("Baselines, ranked on test, filtered", ["", *METRICS.values()], rows)


def _show_splits(report: Report) -> None:
    arities = sorted(report.arities)[:MAX_COLUMNS]
    rows = []
    for name, split in report.splits.items():
        by_arity = [split.arities.get(arity, 0) for arity in arities]
        sizes = [split.entities, split.relations, split.unseen_entities]
        rows.append([name, split.facts, *by_arity, *sizes, split.duplicates, split.literal_facts])
    header = ["split", "facts", *(f"arity {arity}" for arity in arities), "entities", "relations"]
    print_table("Splits", [*header, "unseen entities", "duplicates", "with literals"], rows)

    rows = []
    for arity, counts in report.arities.items():
        rows.append([str(arity), counts.facts, counts.relations, counts.entities, counts.density])
    print_table("Arities", ["arity", "facts", "relations", "entities", "density"], rows)


def _show_relations(report: Report) -> None:
    totals = {name: sum(counts.facts.values()) for name, counts in report.by_relation.items()}
    largest = sorted(totals, key=lambda name: -totals[name])

    rows = []
    for name in largest[:MAX_ROWS]:
        counts = report.by_relation[name]
        roles = ", ".join(f"{role} {number:,}" for role, number in counts.roles[:MAX_ROWS])
        if len(counts.roles) > MAX_ROWS:
            roles += f", … ({len(counts.roles):,} roles)"
        rows.append([name, roles, totals[name], counts.density])

    title = "Relations"
    if len(largest) > MAX_ROWS:
        title += f", the {MAX_ROWS} largest of {len(largest):,}"
    print_table(title, ["relation", "roles and their entities", "facts", "density"], rows, left=2)


def _show_leakage(leakage: Leakage | None) -> None:
    if leakage is None:
        print_line("Leakage: not measured; it needs train facts and test (or valid) facts")
        return

    by_position = enumerate(leakage.key_seen_by_position[:MAX_COLUMNS])
    rows = [
        ("questions whose key is in train (key_seen)", leakage.key_seen),
        *((f"    position {position}", share) for position, share in by_position),
        ("facts that share all entities but one with a training fact", leakage.all_but_one),
        ("facts that share all entities but two with a training fact", leakage.all_but_two),
        ("facts with the same entities as a training fact, in any order", leakage.same_entities),
        ("facts with an entity that train lacks", leakage.unseen_entity_facts),
    ]
    title = f"Leakage of {leakage.split} ({leakage.questions:,} questions)"
    print_table(title, ["what", "share"], rows)

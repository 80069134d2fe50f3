"""Facts written in one format and read back are the same, in the same order, with any names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from getd.datasets.convert import convert
from getd.facts.encode import relations_of
from getd.facts.knowledge_base import tuples_to_named
from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Relation, relation_labels
from getd.facts.role_order import RoleOrder
from getd.formats.format import ReadOptions
from getd.formats.hyper_relational import HyperBuilder, HyperFact
from getd.formats.registry import read_named, write_named
from tests.facts.names import NAMES
from tests.tiny import rows_of

FACTS = st.lists(st.lists(NAMES, min_size=2, max_size=5).map(tuple), min_size=1, max_size=12)
ROLES = st.lists(NAMES, min_size=2, max_size=4, unique=True).map(tuple)


@given(FACTS)
@settings(max_examples=80)
def test_tsv_parquet_jsonl_csv_tsv_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    named = tuples_to_named(facts)
    write_named(named, folder / "a.tsv", "tsv", relations_of([named]))
    for source, target in [
        ("a.tsv", "b.parquet"),
        ("b.parquet", "c.jsonl"),
        ("c.jsonl", "d.csv"),
        ("d.csv", "e.tsv"),
    ]:
        convert(folder / source, folder / target, escaped=source.endswith(".tsv"))
    assert (folder / "e.tsv").read_bytes() == (folder / "a.tsv").read_bytes()
    assert rows_of(read_named(folder / "e.tsv", "tsv", ReadOptions(escaped=True))) == facts


@given(
    st.dictionaries(
        ROLES,
        st.lists(st.lists(NAMES, min_size=5, max_size=5), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=60)
def test_roles_survive_every_form_that_has_a_place_for_them(
    tmp_path_factory: pytest.TempPathFactory, given_facts: dict[tuple[str, ...], list[list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("roles")
    builder = NamedFactsBuilder()
    row = 0
    orders: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for roles, facts in given_facts.items():
        for relation, *entities in facts:
            # A relation has its roles in one order.
            ordered = orders.setdefault((relation, tuple(sorted(roles))), roles)
            builder.add_row(row, relation, ordered, entities[: len(roles)])
            row += 1
    named = builder.build()
    for form in ("parquet", "jsonl", "csv"):
        write_named(named, folder / f"facts.{form}", form, relations_of([named]))  # type: ignore[arg-type]
        again = read_named(folder / f"facts.{form}", form)  # type: ignore[arg-type]
        assert rows_of(again) == rows_of(named)
        assert set(again.signatures) == set(named.signatures)


QUALIFIERS = st.lists(st.tuples(NAMES, NAMES), max_size=4)
HYPER = st.lists(
    st.builds(HyperFact, NAMES, NAMES, NAMES, QUALIFIERS),
    min_size=1,
    max_size=8,
)


def hyper_facts(named: NamedFacts) -> list[HyperFact]:
    """The main triples and qualifiers of n-ary facts, in the order of their rows."""
    facts = []
    for row, roles, (relation, subject, other, *values) in named.facts():
        qualifiers = list(zip(roles[2:], values, strict=True))
        facts.append((row, HyperFact(subject, relation, other, qualifiers)))
    return [fact for _, fact in sorted(facts)]


@given(HYPER)
@settings(max_examples=80)
def test_subject_relation_object_and_qualifiers_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    facts: list[HyperFact],
) -> None:
    builder = HyperBuilder(RoleOrder())
    for line, fact in enumerate(facts):
        builder.add_fact(line, fact)
    named = builder.build()
    expected = [fact._replace(qualifiers=sorted(fact.qualifiers)) for fact in facts]
    assert hyper_facts(named) == expected
    path = tmp_path_factory.mktemp("hyper") / "facts.csv"
    write_named(named, path, "hyper-csv", relations_of([named]))
    assert hyper_facts(read_named(path, "hyper-csv")) == expected


@given(
    st.sets(
        st.builds(Relation, NAMES, st.lists(NAMES, min_size=1, max_size=3).map(tuple)), max_size=8
    )
)
def test_every_relation_has_a_label_of_its_own(relations: set[Relation]) -> None:
    labels = relation_labels(relations)
    assert len(set(labels.values())) == len(relations)
    names = [relation.name for relation in relations]
    assert all(
        label == r.name or names.count(r.name) > 1 or "(" in label for r, label in labels.items()
    )


@pytest.mark.parametrize(
    "name", ["JF17K", "JF17K-3", "JF17K-4", "WikiPeople-3", "WikiPeople-4", "WN18"]
)
def test_the_real_sets_come_back_byte_for_byte(real_data: Path, tmp_path: Path, name: str) -> None:
    convert(real_data / name, tmp_path / "a", "parquet")
    convert(tmp_path / "a", tmp_path / "b", "jsonl")
    convert(tmp_path / "b", tmp_path / "c", "tsv")
    for split in ("train", "valid", "test"):
        assert (tmp_path / "c" / f"{split}.tsv").read_bytes() == (
            real_data / name / f"{split}.txt"
        ).read_bytes()


# Train is three times both, with qualifiers of the same kinds.
@pytest.mark.parametrize("split", ["valid", "test"])
def test_wd50k_comes_back_with_every_qualifier(real_data: Path, tmp_path: Path, split: str) -> None:
    source = real_data / "WD50K" / f"{split}.csv"
    convert(source, tmp_path / "a.parquet", "parquet")
    convert(tmp_path / "a.parquet", tmp_path / "b.jsonl", "jsonl")
    convert(tmp_path / "b.jsonl", tmp_path / "c.csv", "hyper-csv")

    before = source.read_text(encoding="utf-8").splitlines()
    after = (tmp_path / "c.csv").read_text(encoding="utf-8").splitlines()
    assert [canonical(line) for line in after] == [canonical(line) for line in before]


def canonical(line: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    fields = line.split(",")
    return tuple(fields[:3]), tuple(sorted(zip(fields[3::2], fields[4::2], strict=True)))

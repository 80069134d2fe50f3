"""JSON lines of WikiPeople: ``P_h`` and ``P_t`` are subject and object, other keys qualifiers."""

from pathlib import Path

from getd.facts.named import NamedFacts
from getd.formats.format import Format, Head, ReadOptions
from getd.formats.hyper_relational import HyperBuilder, HyperFact
from getd.formats.json_lines import Record, as_list, parse_name, parse_records, shown_keys

_EXPECTED = '{"P_h": subject, "P_t": object, "N": arity, qualifier: [value, …], …}'


def is_wikipeople(head: Head) -> bool:
    """Whether the first line is a JSON object with the keys of a subject and an object."""
    record = head.json_value
    return isinstance(record, dict) and any(
        key.endswith("_h") and f"{key[:-2]}_t" in record for key in record
    )


def read_wikipeople(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts with qualifiers; a qualifier may have several values."""
    builder = HyperBuilder(options.role_order)
    for line, fact in parse_records(path, _parse_fact):
        builder.add_fact(line, fact)
    return builder.build()


def _parse_fact(record: Record) -> HyperFact:
    properties = [key.removesuffix("_h") for key in record if key.endswith("_h")]
    if len(properties) != 1 or f"{properties[0]}_t" not in record:
        raise ValueError(f"expected {_EXPECTED}, found the keys {shown_keys(record)}")
    relation = parse_name(properties[0])
    subject_key = f"{relation}_h"
    object_key = f"{relation}_t"

    qualifiers = []
    for key, values in record.items():
        if key not in (subject_key, object_key, "N"):
            qualifiers += [(parse_name(key), parse_name(value)) for value in as_list(values)]

    arity = str(len(qualifiers) + 2)
    if str(record.get("N", arity)) != arity:
        raise ValueError(f"expected N = {arity} for {arity} entities, found {record['N']}")
    subject = parse_name(record[subject_key])
    return HyperFact(subject, relation, parse_name(record[object_key]), qualifiers)


WIKIPEOPLE = Format("wikipeople", read_wikipeople, None, (".json",), is_wikipeople, priority=3)

"""Facts from JSON lines: ``{"relation": …, "entities": [… ] or {role: …}}``, and the lines of WikiPeople."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import default_roles
from getd.facts.role_order import RoleOrder
from getd.formats.hyper_relational import HyperBuilder
from getd.io.lines import read_pieces
from getd.io.problems import Problems

_KEYS = ({"relation", "entities"}, {"relation", "entities", "roles"})
_SHAPE = '{"relation": name, "entities": [name, …] or {role: name, …}}'
_WIKIPEOPLE = '{"P_h": subject, "P_t": object, "N": arity, qualifier: [value, …], …}'


def read_jsonl(path: Path, order: RoleOrder) -> NamedFacts:
    """One JSON object a line. Entities in a list have positions, in an object roles; a role may hold a list of names.

    The roles of a relation stand in the order of its first fact. Numbers are read as text.
    """
    builder, problems = NamedFactsBuilder(), Problems(path)

    def add(line: int, record: dict[str, Any]) -> None:
        if set(record) not in _KEYS:
            raise ValueError(
                f"expected {_SHAPE}, found the keys {', '.join(map(repr, record)) or '(none)'}"
            )
        relation, entities = _name(record["relation"]), record["entities"]
        if isinstance(entities, dict):
            by_role = {
                role: [_name(v) for v in (value if isinstance(value, list) else [value])]
                for role, value in entities.items()
            }
            found = [_name(role) for role, names in by_role.items() for _ in names]
            roles = order.ordered(relation, found)
            names = [name for role in dict.fromkeys(roles) for name in by_role[role]]
        elif isinstance(entities, list):
            names = [_name(value) for value in entities]
            roles = tuple(map(_name, record.get("roles", default_roles(len(names)))))
            if len(roles) != len(names):
                raise ValueError(
                    f"expected a role for each of {len(names)} entities, found {len(roles)}"
                )
        else:
            raise ValueError(f"expected a list or an object of entities, found {_short(entities)}")
        if not names:
            raise ValueError(
                f"expected a relation and at least one entity, found only {relation!r}"
            )
        builder.add_row(roles, (line, relation, names, 0))

    _each_record(path, problems, add)
    return builder.build()


def read_wikipeople(path: Path) -> NamedFacts:
    """The JSON lines of WikiPeople: ``P_h``, ``P_t`` are subject and object of property P, other keys qualifiers."""
    builder, problems = HyperBuilder(), Problems(path)

    def add(line: int, record: dict[str, Any]) -> None:
        heads = [key.removesuffix("_h") for key in record if key.endswith("_h")]
        if len(heads) != 1 or f"{heads[0]}_t" not in record:
            raise ValueError(
                f"expected {_WIKIPEOPLE}, found the keys {', '.join(map(repr, record)) or '(none)'}"
            )
        main, relation = (f"{heads[0]}_h", f"{heads[0]}_t"), _name(heads[0])
        qualifiers = [
            (_name(key), _name(value))
            for key, values in record.items()
            if key not in (*main, "N")
            for value in (values if isinstance(values, list) else [values])
        ]
        arity = str(len(qualifiers) + 2)
        if str(record.get("N", arity)) != arity:
            raise ValueError(f"expected N = {arity} for {arity} entities, found {record['N']}")
        builder.add_row(
            line, (_name(record[main[0]]), relation, _name(record[main[1]])), qualifiers
        )

    _each_record(path, problems, add)
    return builder.build()


def looks_like_wikipeople(record: object) -> bool:
    """Whether a JSON value has the keys of a WikiPeople line."""
    return isinstance(record, dict) and any(
        key.endswith("_h") and f"{key[:-2]}_t" in record for key in record
    )


def _each_record(
    path: Path, problems: Problems, add: Callable[[int, dict[str, Any]], None]
) -> None:
    decoder = json.JSONDecoder(  # numbers stay as they are written
        object_pairs_hook=_object, parse_int=str, parse_float=str, parse_constant=_no_number
    )
    for number, line in _lines(path):
        try:
            record = decoder.decode(line)
            if not isinstance(record, dict):
                raise ValueError(f"expected a JSON object, found {_short(line)}")
            add(number, record)
        except json.JSONDecodeError as error:
            problems.add(
                number,
                f"expected a JSON object, found {_short(line)} ({error.msg.lower()} at column {error.colno})",
            )
        except RecursionError:
            problems.add(number, "expected a JSON object, found one nested too deeply")
        except ValueError as error:
            problems.add(number, str(error))
    problems.check()


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for piece in read_pieces(path):
        for number, line in enumerate(piece.data.decode().split("\n"), start=piece.first_line):
            if line.strip():
                yield number, line.rstrip("\r")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("expected each key once, found one twice")
    return record


def _no_number(text: str) -> str:
    raise ValueError(f"expected a name, found {text}")


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a name, found {_short(value)}")
    if value == "":
        raise ValueError("expected a name in every field, found an empty one")
    if "\0" in value or not _is_unicode(value):
        raise ValueError(f"expected a name that text can hold, found {value!r}")
    return value


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"

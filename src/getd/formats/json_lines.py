"""JSON lines: ``{"relation": …, "entities": [name, …] or {role: name, …}}``, one fact a line."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from getd.errors import FactFileError
from getd.facts.named import NamedFacts, NamedFactsBuilder
from getd.facts.relation import Relation, Roles, default_roles
from getd.facts.role_order import RoleOrder
from getd.formats.format import Format, Head, ReadOptions
from getd.formats.line_writer import BlockTexts, write_facts
from getd.io.lines import read_pieces
from getd.io.problems import Problems

T = TypeVar("T")
Record = dict[str, Any]  # as parsed: numbers are texts

_KEYS = ({"relation", "entities"}, {"relation", "entities", "roles"})
_EXPECTED = '{"relation": name, "entities": [name, …] or {role: name, …}}'
_TABLE_HINT = "; save a table as CSV or Parquet"
# What predictions add to facts
IGNORED_KEYS = {"confidence", "plausibility", "score", "probability", "rank", "known"}
_EXPECTED_LINES = "expected JSON lines, a whole object on every line"
MAX_SHOWN = 40  # characters of a wrong value in a message


def is_jsonl(head: Head) -> bool:
    """Whether the first line is JSON, or is broken in a file that is called JSON."""
    is_called_json = head.ending in (".jsonl", ".ndjson", ".json")
    return head.json_value is not None or (head.looks_like_json and is_called_json)


def read_jsonl(path: Path, options: ReadOptions) -> NamedFacts:
    """Read facts. A list of entities has positions, an object roles; a role may hold several names.

    The roles of a relation have the order of its first fact. Numbers are read as text.
    """
    builder = NamedFactsBuilder()
    parse = partial(_parse_fact, order=options.role_order)
    for line, (relation, roles, names) in parse_records(path, parse):
        builder.add_row(line, relation, roles, names)
    return builder.build()


def _parse_fact(record: Record, order: RoleOrder) -> tuple[str, Roles, list[str]]:
    if record.keys() - IGNORED_KEYS not in _KEYS:
        hint = "" if record.keys() & {"relation", "entities"} else _TABLE_HINT
        raise ValueError(f"expected {_EXPECTED}, found the keys {shown_keys(record)}{hint}")
    relation = parse_name(record["relation"])
    entities = record["entities"]

    if isinstance(entities, dict):
        by_role = {role: list(map(parse_name, as_list(value))) for role, value in entities.items()}
        given = [parse_name(role) for role, names in by_role.items() for _ in names]
        roles = order.ordered(relation, given)
        names = [name for role in dict.fromkeys(roles) for name in by_role[role]]
    elif isinstance(entities, list):
        names = [parse_name(value) for value in entities]
        roles = _parse_roles(record, len(names))
    else:
        raise ValueError(f"expected a list or an object of entities, found {_shown(entities)}")

    if not names:
        raise ValueError(f"expected a relation and at least one entity, found only {relation!r}")
    return relation, roles, names


def _parse_roles(record: Record, arity: int) -> Roles:
    """The roles of a list of entities, where the record names them."""
    if "roles" not in record:
        return default_roles(arity)
    if not isinstance(record["roles"], list):
        raise ValueError(f"expected a list of roles, found {_shown(record['roles'])}")

    roles = tuple(map(parse_name, record["roles"]))
    if len(roles) != arity:
        raise ValueError(f"expected a role for each of {arity} entities, found {len(roles)}")
    return roles


def parse_records(path: Path, parse: Callable[[Record], T]) -> Iterator[tuple[int, T]]:
    """Parse the JSON object of each line; a ``ValueError`` of ``parse`` makes it a bad line."""
    problems = Problems(path)
    decoder = json.JSONDecoder(  # numbers stay as they are written
        object_pairs_hook=_object, parse_int=str, parse_float=str, parse_constant=_no_number
    )
    for number, line in _lines(path):
        if line.strip() in ("{", "["):  # a document over several lines
            wrong = "found an object or a list over several lines"
            raise FactFileError(path, [(f":{number}", f"{_EXPECTED_LINES}, {wrong}")])
        try:
            record = decoder.decode(line)
            if isinstance(record, list) and record and isinstance(record[0], dict):
                raise ValueError("expected a JSON object, found a list; write one object a line")
            if not isinstance(record, dict):
                raise ValueError(f"expected a JSON object, found {_shown(line)}")
            yield number, parse(record)
        except json.JSONDecodeError as error:
            reason = f"{error.msg.lower()} at column {error.colno}"
            problems.add(number, f"expected a JSON object, found {_shown(line)} ({reason})")
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


def _object(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("expected each key once, found one twice")
    return record


def _no_number(text: str) -> str:
    raise ValueError(f"expected a name, found {text}")


def parse_name(value: object) -> str:
    """Check that a JSON value is a name that text can hold."""
    if not isinstance(value, str):
        raise ValueError(f"expected a name, found {_shown(value)}")
    if value == "":
        raise ValueError("expected a name in every field, found an empty one")

    try:
        value.encode()
        is_text = "\0" not in value
    except UnicodeEncodeError:
        is_text = False
    if not is_text:
        raise ValueError(f"expected a name that text can hold, found {value!r}")
    return value


def as_list(value: object) -> list[Any]:
    """A list as it is, any other value as a list of one."""
    return value if isinstance(value, list) else [value]


def shown_keys(record: Record) -> str:
    """The keys of a record, for a message."""
    return ", ".join(map(repr, record)) or "(none)"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def write_jsonl(facts: NamedFacts, path: Path, relations: Iterable[Relation]) -> None:
    """Write facts; roles that are named make the entities an object."""
    write_facts(path, facts, _to_lines)


def _to_lines(texts: BlockTexts) -> pl.Series:
    start = texts.add(['{"relation":'])
    relation = texts.add_relations(_json_texts)
    entities = texts.add_entities(_json_texts)
    separator = texts.add_by_roles(_separators)  # the first of each fact

    columns = [np.full(len(relation), start), relation]
    for position, entity in enumerate(entities.T):
        columns += [separator + position, entity]
    columns.append(separator + entities.shape[1])
    return texts.join(columns)


def _json_texts(names: pl.Series) -> pl.Series:
    """Names as JSON writes them, quotation marks included."""
    record = names.alias("").to_frame().to_struct().struct.json_encode()  # {"":"name"}
    return record.str.strip_prefix('{"":').str.strip_suffix("}")


def _separators(roles: Roles) -> list[str]:
    """What JSON has before each entity of a fact, and after the last."""
    list_separators = [*[","] * (len(roles) - 1), "]}"]
    if roles == default_roles(len(roles)):
        return [',"entities":[', *list_separators]

    # An object holds each role once, so equal roles must be neighbours.
    groups = [(role, len(list(group))) for role, group in groupby(roles)]
    if len(groups) > len(set(roles)):
        names = json.dumps(roles, ensure_ascii=False, separators=(",", ":"))
        return [f',"roles":{names},"entities":[', *list_separators]

    separators = []
    before = ',"entities":{'
    for role, number in groups:
        is_list = number > 1
        name = json.dumps(role, ensure_ascii=False)
        separators += [f"{before}{name}:{'[' * is_list}", *[","] * (number - 1)]
        before = "]," if is_list else ","
    return [*separators, before[:-1] + "}}"]


JSONL = Format(
    "jsonl", read_jsonl, write_jsonl, (".jsonl", ".ndjson", ".json"), is_jsonl, priority=2
)

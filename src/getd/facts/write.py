"""Named facts into files, in every form, in the order of their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from getd.errors import WriteError
from getd.facts.encode import block_relations, relations_of
from getd.facts.escape import escape_expr
from getd.facts.labels import Labels
from getd.facts.relation import Relation, Roles, default_roles, relation_labels
from getd.facts.vocabulary import write_lines

WriteFormat = Literal["tsv", "csv", "parquet", "jsonl", "hyper-csv"]
WRITE_FORMATS: tuple[WriteFormat, ...] = get_args(WriteFormat)
SUFFIX = {"tsv": ".tsv", "csv": ".csv", "parquet": ".parquet", "jsonl": ".jsonl", "hyper-csv": ".csv"}


def write_labels(labels: Labels, path: Path, form: WriteFormat, tsv_names: Mapping[Relation, str]) -> None:
    """Write facts to a file; ``tsv_names`` comes from :func:`names_without_roles`. What fails is an ``OSError``."""
    try:
        _write(labels, path, form, tsv_names)
    except pl.exceptions.PolarsError as error:  # polars wraps what the disk says
        raise OSError(str(error).split("\n")[0].rsplit("error: ", 1)[-1]) from None


def _write(labels: Labels, path: Path, form: WriteFormat, tsv_names: Mapping[Relation, str]) -> None:
    if form == "tsv":
        write_lines(path, _in_order(labels, lambda labels, arity: _tsv_lines(labels, arity, tsv_names)))
    elif form == "jsonl":
        write_lines(path, _in_order(labels, _json_lines))
    elif form == "hyper-csv":
        write_lines(path, _in_order(labels, _hyper_lines))
    elif form == "csv":
        with path.open("wb") as file:  # polars would read more into a path than there is
            _table(labels).write_csv(file, quote_style="necessary")
    else:
        with path.open("wb") as file:
            _table(labels).write_parquet(file)


def names_without_roles(relations: Iterable[Relation]) -> dict[Relation, str]:
    """What ``tsv``, which has no place for roles, calls each relation.

    Relations without role names are told apart by their arity, so their names will do; others go by their label.
    """
    names = {r: label if r.has_named_roles else r.name for r, label in relation_labels(relations).items()}
    for (name, arity), number in Counter((name, relation.arity) for relation, name in names.items()).items():
        if number > 1:
            raise WriteError(
                f"tsv cannot tell apart {number} relations called {name!r} with {arity} entities; choose another form"
            )
    return names


def _in_order(labels: Labels, lines: Callable[[Labels, int], pl.Series]) -> pl.Series:
    parts = [
        pl.DataFrame([pl.Series("row", block.row), lines(labels, arity).alias("line")])
        for arity, block in labels.blocks.items()
    ]
    return pl.concat(parts).sort("row")["line"]


def _by_signature(labels: Labels, arity: int, text: Callable[[Roles], str | None]) -> pl.Series:
    """A text that depends on the roles, for every fact of a block."""
    texts = [text(roles) if len(roles) == arity else None for roles in labels.signatures]
    return pl.Series(texts, dtype=pl.String).gather(labels.blocks[arity].signature)


def _tsv_lines(labels: Labels, arity: int, tsv_names: Mapping[Relation, str]) -> pl.Series:
    relations, which = block_relations(labels, labels.blocks[arity])
    names = pl.Series([tsv_names[relation] for relation in relations], dtype=pl.String).gather(which)
    texts = labels.texts(arity).with_columns(names.alias("relation"))
    return texts.select(
        pl.concat_str([escape_expr(pl.col(name)) for name in texts.columns], separator="\t")
    ).to_series()


def _json_lines(labels: Labels, arity: int) -> pl.Series:
    """``{"relation": …, "entities": …}``: what stands around the names depends on the roles alone."""
    around = {roles: _json_around(roles) for roles in labels.signatures if len(roles) == arity}
    relation, *entities = (_json_text(column) for column in labels.texts(arity))
    parts = [pl.Series(['{"relation":']).new_from_index(0, len(relation)), relation]
    for position, entity in enumerate(entities):
        parts += [_by_signature(labels, arity, lambda roles, j=position: around[roles][j]), entity]  # type: ignore[misc]
    parts.append(_by_signature(labels, arity, lambda roles: around[roles][-1]))
    frame = pl.DataFrame([part.alias(str(place)) for place, part in enumerate(parts)])
    return frame.select(pl.concat_str(pl.all())).to_series()


def _json_text(names: pl.Series) -> pl.Series:
    """Names as JSON writes them, quotation marks and all."""
    record = names.alias("").to_frame().to_struct().struct.json_encode()  # {"":"name"}
    return record.str.strip_prefix('{"":').str.strip_suffix("}")


def _json_around(roles: Roles) -> list[str]:
    """What JSON has before each entity of a fact, and after the last."""
    if roles == default_roles(len(roles)):
        return [',"entities":[', *[","] * (len(roles) - 1), "]}"]
    if not _stand_together(roles):  # no object can say that
        return [f',"roles":{_dumps(roles)},"entities":[', *[","] * (len(roles) - 1), "]}"]
    before, closing = [], ',"entities":{'
    for role, positions in groupby(roles):
        number = len(list(positions))
        opening, *others = [f"{_dumps(role)}:{'[' * (number > 1)}", *[","] * (number - 1)]
        before += [closing + opening, *others]
        closing = "]," if number > 1 else ","
    return [*before, closing[:-1] + "}}"]


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _stand_together(roles: Roles) -> bool:
    """Whether a role that stands more than once does so in one place."""
    changes = sum(here != before for here, before in zip(roles, (None, *roles), strict=False))
    return changes == len(set(roles))


def check_hyper(relations: Iterable[Relation]) -> None:
    """Refuse relations that hyper-relational rows, which name no role of subject and object, would confuse."""
    seen: dict[tuple[str, Roles], Relation] = {}
    for relation in relations:
        other = seen.setdefault((relation.name, tuple(sorted(relation.roles[2:]))), relation)
        if other != relation:
            first, second = sorted([", ".join(other.roles[:2]), ", ".join(relation.roles[:2])])
            told = f"hyper-csv cannot tell apart {relation.name!r} of {first} and of {second}"
            raise WriteError(f"{told}; choose another form")


def _hyper_lines(labels: Labels, arity: int) -> pl.Series:
    if arity < 2:
        raise WriteError("hyper-csv needs a subject and an object, found facts with one entity")
    texts = labels.texts(arity)
    fields = [texts["0"], texts["relation"], texts["1"]]
    for position in range(2, arity):
        fields += [_by_signature(labels, arity, lambda roles, j=position: roles[j]), texts[str(position)]]  # type: ignore[misc]
    frame = pl.DataFrame([field.alias(str(place)) for place, field in enumerate(fields)])
    return frame.select(pl.concat_str([_quote(pl.col(name)) for name in frame.columns], separator=",")).to_series()


def _quote(field: pl.Expr) -> pl.Expr:
    quoted = pl.lit('"') + field.str.replace_all('"', '""', literal=True) + pl.lit('"')
    return pl.when(field.str.contains(r'[",\r\n]')).then(quoted).otherwise(field)


def _table(labels: Labels) -> pl.DataFrame:
    """Columns relation, e1 … en, and roles, where any relation names them."""
    width = max(labels.blocks)
    with_roles = any(relation.has_named_roles for relation in relations_of([labels]))
    parts = []
    for arity, block in labels.blocks.items():
        texts = labels.texts(arity)
        columns = [pl.Series("row", block.row), texts["relation"]]
        if with_roles:
            columns.append(_by_signature(labels, arity, _roles_text).alias("roles"))
        columns += [texts[str(j)].alias(f"e{j + 1}") for j in range(arity)]
        empty = pl.Series([None], dtype=pl.String).new_from_index(0, len(block))
        columns += [empty.alias(f"e{j + 1}") for j in range(arity, width)]
        parts.append(pl.DataFrame(columns))
    return pl.concat(parts).sort("row").drop("row")


def _roles_text(roles: Roles) -> str | None:
    return None if roles == default_roles(len(roles)) else json.dumps(roles, ensure_ascii=False)

"""Named facts into files, in every form, in the order of their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from getd.errors import WriteError
from getd.facts.escape import escape_expr
from getd.facts.labels import RELATION, ROW, Labels, entity_columns
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
        write_lines(path, _in_order(labels, lambda roles, block: _tsv_lines(roles, block, tsv_names)))
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


def _in_order(labels: Labels, lines: Callable[[Roles, pl.DataFrame], pl.Series]) -> pl.Series:
    parts = [pl.DataFrame([block[ROW], lines(roles, block).alias("line")]) for roles, block in labels.blocks.items()]
    return pl.concat(parts).sort(ROW)["line"]


def _names(block: pl.DataFrame) -> pl.DataFrame:
    return block.select(pl.all().exclude(ROW).cast(pl.String))


def _tsv_lines(roles: Roles, block: pl.DataFrame, tsv_names: Mapping[Relation, str]) -> pl.Series:
    names = block[RELATION].unique().cast(pl.String).to_list()
    relation = pl.col(RELATION).replace_strict(
        {n: tsv_names[Relation(n, roles)] for n in names}, return_dtype=pl.String
    )
    columns = [relation, *map(pl.col, entity_columns(len(roles)))]
    return _names(block).select(pl.concat_str([escape_expr(c) for c in columns], separator="\t")).to_series()


def _json_lines(roles: Roles, block: pl.DataFrame) -> pl.Series:
    columns = entity_columns(len(roles))
    relation, entities, extra = pl.col(RELATION).alias("relation"), pl.concat_list(columns), list[pl.Expr]()
    if not _stand_together(roles):  # no object can say that
        extra = [pl.concat_list([pl.lit(role) for role in roles]).alias("roles")]
    elif roles != default_roles(len(roles)):
        places = {
            role: [c for c, other in zip(columns, roles, strict=True) if other == role] for role in dict.fromkeys(roles)
        }
        entities = pl.struct(
            (pl.col(of[0]) if len(of) == 1 else pl.concat_list(of)).alias(role) for role, of in places.items()
        )
    record = pl.struct(relation, *extra, entities.alias("entities"))
    return _names(block).select(record.struct.json_encode()).to_series()


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


def _hyper_lines(roles: Roles, block: pl.DataFrame) -> pl.Series:
    if len(roles) < 2:
        raise WriteError("hyper-csv needs a subject and an object, found facts with one entity")
    fields = [pl.col("0"), pl.col(RELATION), pl.col("1")]
    for column, role in zip(entity_columns(len(roles))[2:], roles[2:], strict=True):
        fields += [pl.lit(role), pl.col(column)]
    return _names(block).select(pl.concat_str([_quote(field) for field in fields], separator=",")).to_series()


def _quote(field: pl.Expr) -> pl.Expr:
    quoted = pl.lit('"') + field.str.replace_all('"', '""', literal=True) + pl.lit('"')
    return pl.when(field.str.contains(r'[",\r\n]')).then(quoted).otherwise(field)


def _table(labels: Labels) -> pl.DataFrame:
    """Columns relation, e1 … en, and roles, where any relation names them."""
    width = max(map(len, labels.blocks))
    with_roles = any(roles != default_roles(len(roles)) for roles in labels.blocks)
    parts = []
    for roles, block in labels.blocks.items():
        entities = [pl.col(c).cast(pl.String).alias(f"e{int(c) + 1}") for c in entity_columns(len(roles))]
        empty = [pl.lit(None, dtype=pl.String).alias(f"e{j + 1}") for j in range(len(roles), width)]
        named = roles != default_roles(len(roles))
        text = pl.lit(json.dumps(roles, ensure_ascii=False) if named else None, dtype=pl.String).alias("roles")
        parts.append(block.select(ROW, pl.col(RELATION).cast(pl.String), *[text] * with_roles, *entities, *empty))
    return pl.concat(parts).sort(ROW).drop(ROW)

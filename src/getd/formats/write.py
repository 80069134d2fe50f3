"""Named facts into files, in every form, in the order of their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from getd.arrays import Ids
from getd.choices import WriteFormat
from getd.errors import WriteError
from getd.facts.encode import block_relations, distinct
from getd.facts.escape import escape, escape_expr
from getd.facts.named import Block, Codes, NamedFacts
from getd.facts.relation import Relation, Roles, default_roles, relation_labels
from getd.facts.vocabulary import write_lines

WRITE_FORMATS: tuple[WriteFormat, ...] = get_args(WriteFormat)
SUFFIX = {
    "tsv": ".tsv",
    "csv": ".csv",
    "parquet": ".parquet",
    "jsonl": ".jsonl",
    "hyper-csv": ".csv",
}


def write_named(
    labels: NamedFacts, path: Path, form: WriteFormat, tsv_names: Mapping[Relation, str]
) -> None:
    """Write facts to a file; ``tsv_names`` comes from :func:`names_without_roles`. What fails is an ``OSError``."""
    try:
        _write(labels, path, form, tsv_names)
    except pl.exceptions.PolarsError as error:  # polars wraps what the disk says
        raise OSError(str(error).split("\n")[0].rsplit("error: ", 1)[-1]) from None


def _write(
    labels: NamedFacts, path: Path, form: WriteFormat, tsv_names: Mapping[Relation, str]
) -> None:
    if form == "tsv":
        write_lines(
            path, _in_order(labels, lambda labels, arity: _tsv_lines(labels, arity, tsv_names))
        )
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
    names = {
        r: label if r.has_named_roles else r.name for r, label in relation_labels(relations).items()
    }
    for (name, arity), number in Counter(
        (name, relation.arity) for relation, name in names.items()
    ).items():
        if number > 1:
            raise WriteError(
                f"tsv cannot tell apart {number} relations called {name!r} with {arity} entities; choose another form"
            )
    return names


def _in_order(labels: NamedFacts, lines: Callable[[NamedFacts, int], pl.Series]) -> pl.Series:
    parts = [
        pl.DataFrame([pl.Series("row", block.row), lines(labels, arity).alias("line")])
        for arity, block in labels.blocks.items()
    ]
    return pl.concat(parts).sort("row")["line"]


class _Texts:
    """Texts by number, from which the lines of a block are joined; each text is there once."""

    def __init__(self) -> None:
        self._parts: list[pl.Series] = []
        self._size = 0

    def add(self, texts: pl.Series | Sequence[str]) -> int:
        """Add texts; the number of the first."""
        first = self._size
        self._parts.append(
            texts.alias("") if isinstance(texts, pl.Series) else pl.Series(texts, dtype=pl.String)
        )
        self._size += len(texts)
        return first

    def add_used(
        self, names: pl.Series, numbers: Codes, write: Callable[[pl.Series], pl.Series]
    ) -> Ids:
        """Add, as they are written, the names that some numbers stand for; the numbers of the texts."""
        used, which = distinct(numbers.ravel().astype(np.int64))
        return self.add(write(names.gather(used))) + which.reshape(numbers.shape)

    def joined(self, numbers: Sequence[Ids], separator: str = "") -> pl.Series:
        """Lines from columns of numbers."""
        table = np.column_stack(numbers)
        return pl.concat(self._parts).gather(table.ravel()).reshape(table.shape).arr.join(separator)


def _tsv_lines(labels: NamedFacts, arity: int, tsv_names: Mapping[Relation, str]) -> pl.Series:
    block = labels.blocks[arity]
    relations, which = block_relations(labels, block)
    texts = _Texts()
    relation = texts.add([escape(tsv_names[relation]) for relation in relations]) + which
    entities = texts.add_used(labels.entities, block.entities, _escaped)
    return texts.joined([relation, *entities.T], "\t")


def _escaped(names: pl.Series) -> pl.Series:
    return names.to_frame("name").select(escape_expr(pl.col("name"))).to_series()


def _json_lines(labels: NamedFacts, arity: int) -> pl.Series:
    """``{"relation": …, "entities": …}``: what stands around the names depends on the roles alone."""
    block = labels.blocks[arity]
    signatures, which = np.unique(block.signature, return_inverse=True)
    texts = _Texts()
    texts.add(['{"relation":'])
    relation = texts.add_used(labels.relations, block.relation, _json_text)
    entities = texts.add_used(labels.entities, block.entities, _json_text)
    around = [text for number in signatures for text in _json_around(labels.signatures[number])]
    first_around = texts.add(around) + which.reshape(-1) * (arity + 1)
    numbers: list[Ids] = [np.zeros(len(block), dtype=np.int64), relation]
    for position, entity in enumerate(entities.T):
        numbers += [first_around + position, entity]
    numbers.append(first_around + arity)
    return texts.joined(numbers)


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


def _hyper_lines(labels: NamedFacts, arity: int) -> pl.Series:
    if arity < 2:
        raise WriteError("hyper-csv needs a subject and an object, found facts with one entity")
    block = labels.blocks[arity]
    signatures, which = np.unique(block.signature, return_inverse=True)
    texts = _Texts()
    relation = texts.add_used(labels.relations, block.relation, _quoted)
    subject, other, *values = texts.add_used(labels.entities, block.entities, _quoted).T
    roles = [role for number in signatures for role in labels.signatures[number]]
    first_role = texts.add(_quoted(pl.Series(roles, dtype=pl.String))) + which.reshape(-1) * arity
    numbers: list[Ids] = [subject, relation, other]
    for position, value in enumerate(values, start=2):
        numbers += [first_role + position, value]
    return texts.joined(numbers, ",")


def _quoted(texts: pl.Series) -> pl.Series:
    field = pl.col("text")
    quoted = pl.lit('"') + field.str.replace_all('"', '""', literal=True) + pl.lit('"')
    quote = pl.when(field.str.contains(r'[",\r\n]')).then(quoted).otherwise(field)
    return texts.to_frame("text").select(quote).to_series()


def _table(labels: NamedFacts) -> pl.DataFrame:
    """Columns relation, e1 … en, and roles, where any relation names them."""
    blocks = labels.blocks.values()
    order = np.argsort(np.concatenate([block.row for block in blocks]), kind="stable")
    relation = np.concatenate([block.relation for block in blocks])[order]
    columns = [labels.relations.gather(relation).alias("relation")]
    if any(roles != default_roles(len(roles)) for roles in labels.signatures):
        texts = pl.Series([_roles_text(roles) for roles in labels.signatures], dtype=pl.String)
        signature = np.concatenate([block.signature for block in blocks])[order]
        columns.append(texts.gather(signature).alias("roles"))

    empty = len(labels.entities)
    names = pl.concat([labels.entities, pl.Series([None], dtype=pl.String)])
    for position in range(max(labels.blocks)):
        column = np.concatenate([_column(block, position, empty) for block in blocks])[order]
        columns.append(names.gather(column).alias(f"e{position + 1}"))
    return pl.DataFrame(columns)


def _column(block: Block, position: int, empty: int) -> Ids:
    """The entities at a position, or the number of the empty name where the arity is lower."""
    if position < block.entities.shape[1]:
        return block.entities[:, position].astype(np.int64)
    return np.full(len(block), empty, dtype=np.int64)


def _roles_text(roles: Roles) -> str | None:
    return None if roles == default_roles(len(roles)) else json.dumps(roles, ensure_ascii=False)

"""The facts of a run with their split, as a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from getd.errors import RunError
from getd.facts.facts import Blocks, Facts
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation
from getd.facts.split import SPLITS
from getd.formats.parquet import decode_parquet
from getd.formats.parquet_pages import BrokenParquet, check_pages
from getd.io.atomic import atomic_path
from getd.io.panics import Panic, panics_as_errors

MOST_PACKED = (
    16  # distinct facts in a byte of their file: there are fewer, however well it is packed
)


def write_facts(path: Path, kb: KnowledgeBase) -> None:
    """All facts of a knowledge base, in their order."""
    parts = [
        pl.DataFrame(
            {
                "split": [split] * len(facts),
                "relation": facts.relation,
                "entities": facts.entities.tolist(),
            }
        )
        for split, blocks in kb.splits.items()
        for facts in blocks.values()
    ]
    with atomic_path(path) as temporary:
        pl.concat(parts).write_parquet(temporary)


def read_facts(
    path: Path, signatures: tuple[Relation, ...], n_entities: int
) -> Mapping[str, Blocks]:
    """What :func:`write_facts` wrote, by split and arity; facts of names that there are not are refused."""
    table = _read_table(path)
    _check(path, table, signatures, n_entities)

    splits: dict[str, dict[int, Facts]] = {}
    table = table.with_columns(pl.col("entities").list.len().alias("arity"))
    for (split, arity), block in table.partition_by(
        "split", "arity", as_dict=True, maintain_order=True
    ).items():
        rows = (
            block["entities"]
            .explode(empty_as_null=False)
            .to_numpy()
            .reshape(len(block), int(arity))
        )
        splits.setdefault(str(split), {})[int(arity)] = Facts(block["relation"].to_numpy(), rows)
    return MappingProxyType(
        {split: MappingProxyType(dict(sorted(blocks.items()))) for split, blocks in splits.items()}
    )


def _read_table(path: Path) -> pl.DataFrame:
    data = path.read_bytes()
    try:
        check_pages(data)
        with panics_as_errors():
            rows = pl.scan_parquet(BytesIO(data)).select(pl.len()).collect().item()
        if rows > MOST_PACKED * len(data):
            raise RunError(
                f"{path}: expected distinct facts, found {rows:,} in {len(data):,} bytes"
            )
        return decode_parquet(data).select(
            pl.col("split").cast(pl.String),
            pl.col("relation").cast(pl.Int64),
            pl.col("entities").cast(pl.List(pl.Int64)),
        )
    except (pl.exceptions.PolarsError, BrokenParquet, Panic) as error:
        reason = str(error).split("\n")[0]
        raise RunError(f"{path}: expected facts, found a broken file ({reason})") from None


def _check(
    path: Path, table: pl.DataFrame, signatures: tuple[Relation, ...], n_entities: int
) -> None:
    """Refuse facts of names that there are not."""
    fits = not any(table[name].has_nulls() for name in table.columns)
    fits = fits and set(table["split"].unique()) <= set(SPLITS)
    if fits:
        relation = table["relation"].to_numpy()
        entities = table["entities"].explode(empty_as_null=False).to_numpy()
        fits = _within(relation, len(signatures)) and _within(entities, n_entities)
    if fits:
        arity = np.array([0, *(signature.arity for signature in signatures)])
        fits = bool((arity[relation + 1] == table["entities"].list.len().to_numpy()).all())
    if not fits:
        raise RunError(f"{path}: expected facts of the names of this run, found others")


def _within(ids: np.ndarray, size: int) -> bool:
    return bool(((ids >= 0) & (ids < size)).all())

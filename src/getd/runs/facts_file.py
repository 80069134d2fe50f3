"""The facts of a run with their split, as a Parquet file."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

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

MAX_PACKED = 16  # facts in a byte of their file: distinct facts never pack as well as this
Signatures = tuple[Relation, ...]  # by relation id


def write_facts(path: Path, kb: KnowledgeBase) -> None:
    """Write all facts of a knowledge base in their order."""
    parts = []
    for split, blocks in kb.splits.items():
        for facts in blocks.values():
            columns = {
                "split": [split] * len(facts),
                "relation": facts.relation,
                "entities": facts.entities.tolist(),
            }
            parts.append(pl.DataFrame(columns))

    with atomic_path(path) as temporary:
        pl.concat(parts).write_parquet(temporary)


def read_facts(path: Path, signatures: Signatures, n_entities: int) -> Mapping[str, Blocks]:
    """Read what :func:`write_facts` wrote, by split and arity; unknown ids are refused."""
    table = _read_table(path)
    if not _has_known_ids(table, signatures, n_entities):
        raise RunError(f"{path}: expected facts of the names of this run, found others")

    splits: dict[str, dict[int, Facts]] = {}
    table = table.with_columns(pl.col("entities").list.len().alias("arity"))
    parts = table.partition_by("split", "arity", as_dict=True, maintain_order=True)
    for (split, arity), part in parts.items():
        entities = part["entities"].explode(empty_as_null=False).to_numpy()
        facts = Facts(part["relation"].to_numpy(), entities.reshape(len(part), int(arity)))
        splits.setdefault(str(split), {})[int(arity)] = facts

    return {name: dict(sorted(blocks.items())) for name, blocks in splits.items()}


def _read_table(path: Path) -> pl.DataFrame:
    data = path.read_bytes()
    try:
        check_pages(data)
        with panics_as_errors():
            rows = pl.scan_parquet(BytesIO(data)).select(pl.len()).collect().item()
        if rows > MAX_PACKED * len(data):
            size = f"{rows:,} in {len(data):,} bytes"
            raise RunError(f"{path}: expected distinct facts, found {size}")
        return decode_parquet(data).select(
            pl.col("split").cast(pl.String),
            pl.col("relation").cast(pl.Int64),
            pl.col("entities").cast(pl.List(pl.Int64)),
        )
    except (pl.exceptions.PolarsError, BrokenParquet, Panic) as error:
        reason = str(error).split("\n")[0]
        raise RunError(f"{path}: expected facts, found a broken file ({reason})") from None


def _has_known_ids(table: pl.DataFrame, signatures: Signatures, n_entities: int) -> bool:
    """Whether all facts are of known names, with as many entities as their relation has."""
    if any(table.null_count().row(0)):
        return False
    if not set(table["split"].unique()) <= set(SPLITS):
        return False

    relation = table["relation"].to_numpy()
    entities = table["entities"].explode(empty_as_null=False).to_numpy()
    if not (_within(relation, len(signatures)) and _within(entities, n_entities)):
        return False

    arities = np.array([signature.arity for signature in signatures], dtype=np.int64)
    return bool((arities[relation] == table["entities"].list.len().to_numpy()).all())


def _within(ids: np.ndarray, size: int) -> bool:
    return bool(((ids >= 0) & (ids < size)).all())

"""The files of a run.

``config.toml · model.json · weights.safetensors · entities.txt · relations.txt · roles.json · facts.parquet ·
history.jsonl · report.json · environment.json · checkpoint/``; ``memory.json`` where it was given a memory, and
``calibration.json`` where it has a validation split. Every file is written to a temporary name and renamed; only the
history is appended to.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from getd.errors import FactError, RunError
from getd.facts.encode import Duplicates
from getd.facts.facts import Facts
from getd.facts.files import atomic_path
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation
from getd.facts.vocabulary import Vocabulary
from getd.settings import read_toml, to_toml

MOST_PACKED = 16  # distinct facts in a byte of their file: there are fewer, however well it is packed


@dataclass(frozen=True)
class RunFolder:
    """A run on disk."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """The file that a training goes on from."""
        return self.path / "checkpoint" / "state.safetensors"

    def exists(self) -> bool:
        """Whether there is a run here, finished or not."""
        return (self.path / "config.toml").exists()

    def is_finished(self) -> bool:
        """Whether its weights are there."""
        return (self.path / "weights.safetensors").exists()

    def has_memory(self) -> bool:
        """Whether it was given a memory."""
        return (self.path / "memory.json").exists()

    def is_calibrated(self) -> bool:
        """Whether its probabilities were fitted."""
        return (self.path / "calibration.json").exists()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Settings in full, as ``getd train --config`` reads them."""
        self._write("config.toml", to_toml(config))

    def read_config(self) -> dict[str, Any]:
        """The settings of the run."""
        return read_toml(self._existing("config.toml"))

    def write_json(self, name: str, value: Any) -> None:
        """A JSON file."""
        self._write(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> Any:
        """What a JSON file holds."""
        path = self._existing(name)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path}: expected JSON, found a broken file ({error})") from None

    def forget(self, name: str) -> None:
        """Remove a file that is not true any more."""
        (self.path / name).unlink(missing_ok=True)

    def write_weights(self, weights: Mapping[str, Tensor]) -> None:
        """The weights of the model."""
        with atomic_path(self.path / "weights.safetensors") as temporary:
            save_file({name: tensor.contiguous().cpu() for name, tensor in weights.items()}, temporary)

    def read_weights(self) -> dict[str, Tensor]:
        """The weights of the model."""
        path = self._existing("weights.safetensors")
        try:
            return load_file(path)
        except Exception as error:
            raise RunError(f"{path}: expected weights, found a broken file ({error})") from None

    def read_shapes(self) -> dict[str, list[int]]:
        """The names and shapes of the weights, from the head of their file alone."""
        path = self._existing("weights.safetensors")
        try:
            with safe_open(path, framework="pt") as file:
                return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise RunError(f"{path}: expected weights, found a broken file ({error})") from None

    def write_knowledge_base(self, kb: KnowledgeBase) -> None:
        """Names, relations with their roles, and all facts with their split."""
        kb.entities.save(self.path / "entities.txt")
        kb.relations.save(self.path / "relations.txt")
        roles = {
            label: {"name": r.name, "roles": r.roles} for label, r in zip(kb.relations, kb.signatures, strict=True)
        }
        self.write_json("roles.json", {"data": kb.name, "relations": roles})
        parts = [
            pl.DataFrame(
                {"split": [split] * len(facts), "relation": facts.relation, "entities": facts.entities.tolist()}
            )
            for split, blocks in kb.splits.items()
            for facts in blocks.values()
        ]
        with atomic_path(self.path / "facts.parquet") as temporary:
            pl.concat(parts).write_parquet(temporary)

    def read_knowledge_base(self) -> KnowledgeBase:
        """What :meth:`write_knowledge_base` wrote."""
        try:
            entities, relations = (Vocabulary.open(self._existing(f"{what}.txt")) for what in ("entities", "relations"))
        except FactError as error:
            raise RunError(str(error)) from None
        name, signatures = self._signatures(relations)
        path = self._existing("facts.parquet")
        try:
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            if rows > MOST_PACKED * path.stat().st_size:
                raise RunError(f"{path}: expected distinct facts, found {rows:,} in {path.stat().st_size:,} bytes")
            table = pl.read_parquet(path).select(
                pl.col("split").cast(pl.String),
                pl.col("relation").cast(pl.Int64),
                pl.col("entities").cast(pl.List(pl.Int64)),
            )
        except pl.exceptions.PolarsError as error:
            reason = str(error).split("\n")[0]
            raise RunError(f"{path}: expected facts, found a broken file ({reason})") from None
        _check_facts(path, table, signatures, len(entities))
        splits: dict[str, dict[int, Facts]] = {}
        table = table.with_columns(pl.col("entities").list.len().alias("arity"))
        for (split, arity), block in table.partition_by("split", "arity", as_dict=True, maintain_order=True).items():
            rows = block["entities"].explode(empty_as_null=False).to_numpy().reshape(len(block), int(arity))
            splits.setdefault(str(split), {})[int(arity)] = Facts(block["relation"].to_numpy(), rows)
        return KnowledgeBase(
            name=name,
            entities=entities,
            relations=relations,
            signatures=signatures,
            splits=MappingProxyType({split: MappingProxyType(dict(sorted(b.items()))) for split, b in splits.items()}),
            duplicates=MappingProxyType({split: Duplicates() for split in splits}),
        )

    def _signatures(self, relations: Vocabulary) -> tuple[str, tuple[Relation, ...]]:
        """The name of the data, and the relations with their roles."""
        roles = self.read_json("roles.json")
        try:
            found = [roles["relations"][label] for label in relations]
            signatures = tuple(Relation(str(each["name"]), tuple(map(str, each["roles"]))) for each in found)
            name = str(roles["data"])
        except (KeyError, TypeError):
            raise RunError(f"{self.path / 'roles.json'}: expected the roles of all relations, found others") from None
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise RunError(f"{self.path / 'roles.json'}: expected the name of a data set, found {name!r}")
        return name, signatures

    def append_history(self, line: Mapping[str, Any]) -> None:
        """Add a line to the history; it is on disk when this returns."""
        with (self.path / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read_history(self) -> list[dict[str, Any]]:
        """The epochs so far; a last line that was cut off is dropped."""
        path = self.path / "history.jsonl"
        if not path.exists():
            return []
        *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")
        return [json.loads(line) for line in lines]

    def cut_history(self, last_epoch: int) -> None:
        """Forget what came after an epoch."""
        kept = [line for line in self.read_history() if line["epoch"] <= last_epoch]
        self._write("history.jsonl", "".join(json.dumps(line) + "\n" for line in kept))

    def _write(self, name: str, text: str) -> None:
        with atomic_path(self.path / name) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _existing(self, name: str) -> Path:
        if not (self.path / name).is_file():
            what = "has no weights yet; finish it with --resume" if name == "weights.safetensors" else f"has no {name}"
            raise RunError(
                f"{self.path} {what}" if self.exists() else f"{self.path} is not a run: there is no config.toml in it"
            )
        return self.path / name


def _check_facts(path: Path, table: pl.DataFrame, signatures: tuple[Relation, ...], n_entities: int) -> None:
    """Refuse facts of names that there are not."""
    fits = not any(table[name].has_nulls() for name in table.columns)
    fits = fits and set(table["split"].unique()) <= {"train", "valid", "test"}
    if fits:
        relation, arity = table["relation"].to_numpy(), np.array([0, *(found.arity for found in signatures)])
        entities = table["entities"].explode(empty_as_null=False).to_numpy()
        fits = bool(
            ((relation >= 0) & (relation < len(signatures))).all() and ((entities >= 0) & (entities < n_entities)).all()
        )
        fits = fits and bool((arity[relation + 1] == table["entities"].list.len().to_numpy()).all())
    if not fits:
        raise RunError(f"{path}: expected facts of the names of this run, found others")


def environment() -> dict[str, Any]:
    """The machine and the versions a result was made with."""
    packages = ("getd", "numpy", "polars", "torch")
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in packages},
    }

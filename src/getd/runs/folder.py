"""The files of a run.

``config.toml · model.json · weights.safetensors · entities.txt · relations.txt · roles.json · facts.parquet ·
history.jsonl · report.json · environment.json · checkpoint/``; ``memory.json`` where it was given a memory, and
``calibration.json`` where it has a validation split. Every file is written to a temporary name and renamed; only the
history is appended to. Whatever is read is checked: a file of another shape is one line that names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from getd.config import read_toml, to_toml
from getd.errors import ConfigError, FactError, RunError, WriteError
from getd.evaluation.report import Report
from getd.facts.encode import Duplicates
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.relation import Relation
from getd.facts.vocabulary import Vocabulary
from getd.io.atomic import atomic_path, sync
from getd.runs.facts_file import read_facts, write_facts
from getd.runs.fingerprint import facts_fingerprint, weights_fingerprint
from getd.runs.lock import is_left_over
from getd.runs.records import (
    HistoryLine,
    Record,
    RolesRecord,
    check_record,
    parse_json,
)

TABLES = ("model", "training", "memory", "published")  # of a config


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

    def is_free(self) -> bool:
        """Whether a run may be begun here: there is nothing, or a folder without content."""
        if not self.path.is_dir():
            return not self.path.exists()
        return all(is_left_over(child.name) for child in self.path.iterdir())

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
        self._write({"config.toml": to_toml(config)})

    def read_config(self) -> dict[str, Any]:
        """The settings of the run: at least a table ``model`` with a name."""
        path = self._existing("config.toml")
        try:
            config = read_toml(path)
        except (ConfigError, RecursionError) as error:
            raise RunError(
                str(error) if isinstance(error, ConfigError) else f"{path}: nested too deeply"
            ) from None
        for name in TABLES:
            if not isinstance(config.get(name, {}), dict):
                raise RunError(f"{path}: expected a table [{name}], found a single value")
        if not isinstance(config.get("model", {}).get("name"), str):
            raise RunError(f"{path}: expected a table [model] with a name, found none")
        return config

    def write_json(self, name: str, value: Any) -> None:
        """A JSON file."""
        self.write_json_files({name: value})

    def write_json_files(self, files: Mapping[str, Any]) -> None:
        """JSON files by name: all of them, or, where the disk is full, none."""
        self._write(
            {
                name: json.dumps(value, indent=2, ensure_ascii=False) + "\n"
                for name, value in files.items()
            }
        )

    def read_json(self, name: str) -> dict[str, Any]:
        """What a JSON file holds: an object."""
        value = self._read_json(name)
        check_record(Record, value, self.path / name)
        return dict(value)

    def read_report(self) -> Report:
        """How the finished model did on test."""
        return check_record(Report, self._read_json("report.json"), self.path / "report.json")

    def write_weights(self, weights: Mapping[str, Tensor]) -> None:
        """The weights of the model, and what tells them from others."""
        plain = {name: tensor.contiguous().cpu() for name, tensor in weights.items()}
        with atomic_path(self.path / "weights.safetensors") as temporary:
            save_file(plain, temporary, {"fingerprint": weights_fingerprint(plain)})

    def read_weights(self) -> dict[str, Tensor]:
        """The weights of the model."""
        path = self._existing("weights.safetensors")
        try:
            return load_file(path)
        except Exception as error:
            raise _no_weights(path, error) from None

    def read_shapes(self) -> dict[str, list[int]]:
        """The names and shapes of the weights, from the head of their file alone."""
        path = self._existing("weights.safetensors")
        try:
            with safe_open(path, framework="pt") as file:
                return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise _no_weights(path, error) from None

    def read_fingerprint(self) -> str | None:
        """What tells the weights from others, from the head of their file; None: a run from before it was kept."""
        path = self._existing("weights.safetensors")
        try:
            with safe_open(path, framework="pt") as file:
                return (file.metadata() or {}).get("fingerprint")
        except Exception as error:
            raise _no_weights(path, error) from None

    def write_knowledge_base(self, kb: KnowledgeBase) -> None:
        """Names, relations with their roles, and all facts with their split."""
        kb.entities.save(self.path / "entities.txt")
        kb.relations.save(self.path / "relations.txt")
        roles = {
            label: {"name": r.name, "roles": r.roles}
            for label, r in zip(kb.relations, kb.signatures, strict=True)
        }
        described = {"data": kb.name, "fingerprint": facts_fingerprint(kb), "relations": roles}
        self.write_json("roles.json", described)
        write_facts(self.path / "facts.parquet", kb)

    def read_knowledge_base(self) -> KnowledgeBase:
        """What :meth:`write_knowledge_base` wrote."""
        try:
            entities, relations = (
                Vocabulary.open(self._existing(f"{what}.txt")) for what in ("entities", "relations")
            )
        except FactError as error:
            raise RunError(str(error)) from None
        described = self.read_roles()
        signatures = self._signatures(described, relations)
        splits = read_facts(self._existing("facts.parquet"), signatures, len(entities))
        return KnowledgeBase(
            name=described.data,
            entities=entities,
            relations=relations,
            signatures=signatures,
            splits=splits,
            duplicates=MappingProxyType({split: Duplicates() for split in splits}),
        )

    def read_roles(self) -> RolesRecord:
        """The name of the data, and the relations with their roles."""
        path = self.path / "roles.json"
        described = check_record(RolesRecord, self._read_json("roles.json"), path)
        name = described.data
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise RunError(f"{path}: expected the name of a data set, found {name!r}")
        return described

    def _signatures(self, described: RolesRecord, relations: Vocabulary) -> tuple[Relation, ...]:
        """The relations with their roles, in the order of their numbers."""
        if any(label not in described.relations for label in relations):
            raise RunError(
                f"{self.path / 'roles.json'}: expected the roles of all relations, found others"
            )
        records = [described.relations[label] for label in relations]
        return tuple(Relation(record.name, tuple(record.roles)) for record in records)

    def append_history(self, line: Mapping[str, Any]) -> None:
        """Add a line to the history; it is on disk when this returns."""
        path = self.path / "history.jsonl"
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}") from None

    def read_history(self) -> list[dict[str, Any]]:
        """The epochs so far, one after the other; a last line that was cut off is dropped."""
        path = self.path / "history.jsonl"
        if not path.exists():
            return []
        *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")
        history = []
        for number, text in enumerate(lines, start=1):
            line = parse_json(text, f"{path}:{number}")
            epoch = check_record(HistoryLine, line, f"{path}:{number}").epoch
            if epoch != number:
                raise RunError(f"{path}:{number}: expected epoch {number}, found epoch {epoch}")
            history.append(line)
        return history

    def cut_history(self, last_epoch: int) -> None:
        """Forget what came after an epoch; all before it must be there."""
        kept = self.read_history()[:last_epoch]
        if len(kept) < last_epoch:
            path = self.path / "history.jsonl"
            raise RunError(
                f"{path}: expected the {last_epoch} epochs before the checkpoint, found {len(kept)}"
            )
        self._write({"history.jsonl": "".join(json.dumps(line) + "\n" for line in kept)})

    def _write(self, files: Mapping[str, str]) -> None:
        """Text files by name; they get their names when all are on the disk."""
        with ExitStack() as stack:
            for name, text in files.items():
                temporary = stack.enter_context(atomic_path(self.path / name))
                temporary.write_text(text, encoding="utf-8")
                sync(temporary)

    def _read_json(self, name: str) -> Any:
        path = self._existing(name)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RunError(
                f"{path}: expected UTF-8, found another byte at offset {error.start}"
            ) from None
        return parse_json(text, path)

    def _existing(self, name: str) -> Path:
        if not (self.path / name).is_file():
            what = (
                "has no weights yet; finish it with --resume"
                if name == "weights.safetensors"
                else f"has no {name}"
            )
            raise RunError(
                f"{self.path} {what}"
                if self.exists()
                else f"{self.path} is not a run: there is no config.toml in it"
            )
        return self.path / name


def _no_weights(path: Path, error: Exception) -> RunError:
    return RunError(f"{path}: expected weights, found a broken file ({error})")

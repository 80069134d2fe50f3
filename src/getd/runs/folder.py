"""The files of a run.

``config.toml · model.json · weights.safetensors · entities.txt · relations.txt · roles.json ·
facts.parquet · history.jsonl · report.json · environment.json · checkpoint/``, and ``memory.json``
and ``calibration.json`` if they were fitted. A combined run has ``combined.json``, and neither
history nor checkpoint; the winner of a search has ``budget.json``. Every file is written to a
temporary name and renamed; only the history is appended to. Whatever is read is checked: a file of
another shape is refused in one line that names it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
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
    CombinationRecord,
    HistoryLine,
    R,
    Record,
    RolesRecord,
    StoredConfig,
    parse_record,
)

TABLES = ("model", "training", "memory", "published")  # of a config


@dataclass(frozen=True)
class RunFolder:
    """A run on disk."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """The file that a training resumes from."""
        return self.path / "checkpoint" / "state.safetensors"

    @property
    def history(self) -> Path:
        """The file with a line for each epoch."""
        return self.path / "history.jsonl"

    def exists(self) -> bool:
        """Whether the folder holds a run, finished or not."""
        return (self.path / "config.toml").exists()

    def is_free(self) -> bool:
        """Whether a run may start in it: there is nothing, or a folder without content."""
        if not self.path.is_dir():
            return not self.path.exists()
        return all(is_left_over(child.name) for child in self.path.iterdir())

    def is_finished(self) -> bool:
        """Whether its weights are there."""
        return (self.path / "weights.safetensors").exists()

    def has_memory(self) -> bool:
        return (self.path / "memory.json").exists()

    def is_calibrated(self) -> bool:
        """Whether its probabilities were fitted."""
        return (self.path / "calibration.json").exists()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write all settings, as ``getd train --config`` reads them."""
        self._write({"config.toml": to_toml(config)})

    def read_config(self) -> StoredConfig:
        """Read the settings of the run: at least a table ``model`` with a name."""
        path = self._existing("config.toml")
        try:
            config = StoredConfig(read_toml(path))
        except ConfigError as error:
            raise RunError(str(error)) from None
        except RecursionError:
            raise RunError(f"{path}: nested too deeply") from None

        for name in TABLES:
            if not isinstance(config.get(name, {}), dict):
                raise RunError(f"{path}: expected a table [{name}], found a single value")
        if not isinstance(config.get("model", {}).get("name"), str):
            raise RunError(f"{path}: expected a table [model] with a name, found none")
        return config

    def write_json(self, name: str, value: Any) -> None:
        self.write_json_files({name: value})

    def write_json_files(self, files: Mapping[str, Any]) -> None:
        """Write JSON files by name: all of them, or none if the disk is full."""
        texts = {}
        for name, value in files.items():
            texts[name] = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        self._write(texts)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON file that holds an object."""
        return dict(self._read_record(name, Record).model_extra or {})

    def is_combined(self) -> bool:
        """Whether it was made of other runs."""
        return (self.path / "combined.json").exists()

    def read_combination(self) -> CombinationRecord:
        """Read what a combined run was made of."""
        return self._read_record("combined.json", CombinationRecord)

    def read_report(self) -> Report:
        """Read how the finished model did on test."""
        return self._read_record("report.json", Report)

    def write_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Write the weights of the model, with their fingerprint."""
        plain = {name: tensor.contiguous().cpu() for name, tensor in weights.items()}
        with atomic_path(self.path / "weights.safetensors") as temporary:
            save_file(plain, temporary, {"fingerprint": weights_fingerprint(plain)})

    def read_weights(self) -> dict[str, Tensor]:
        with self._weights_file() as path:
            return load_file(path)

    def read_shapes(self) -> dict[str, list[int]]:
        """Read the names and shapes of the weights, from the head of their file alone."""
        with self._weights_file() as path, safe_open(path, framework="pt") as file:
            return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118

    def read_fingerprint(self) -> str | None:
        """Read the fingerprint of the weights; None: a run from before it was kept."""
        with self._weights_file() as path, safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("fingerprint")

    def write_knowledge_base(self, kb: KnowledgeBase) -> None:
        """Write the names, the relations with their roles, and all facts with their split."""
        kb.entities.save(self.path / "entities.txt")
        kb.relations.save(self.path / "relations.txt")

        relations = {}
        for label, relation in zip(kb.relations, kb.signatures, strict=True):
            relations[label] = {"name": relation.name, "roles": relation.roles}
        fingerprint = facts_fingerprint(kb)
        described = {"data": kb.name, "fingerprint": fingerprint, "relations": relations}
        self.write_json("roles.json", described)
        write_facts(self.path / "facts.parquet", kb)

    def read_knowledge_base(self) -> KnowledgeBase:
        """Read what :meth:`write_knowledge_base` wrote."""
        try:
            entities = Vocabulary.open(self._existing("entities.txt"))
            relations = Vocabulary.open(self._existing("relations.txt"))
        except FactError as error:
            raise RunError(str(error)) from None

        described = self.read_roles()
        if any(label not in described.relations for label in relations):
            path = self.path / "roles.json"
            raise RunError(f"{path}: expected the roles of all relations, found others")
        records = [described.relations[label] for label in relations]
        signatures = tuple(Relation(record.name, tuple(record.roles)) for record in records)

        splits = read_facts(self._existing("facts.parquet"), signatures, len(entities))
        duplicates = dict.fromkeys(splits, Duplicates())
        return KnowledgeBase(described.data, entities, relations, signatures, splits, duplicates)

    def read_roles(self) -> RolesRecord:
        """Read the name of the data, and the relations with their roles."""
        described = self._read_record("roles.json", RolesRecord)
        name = described.data
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            path = self.path / "roles.json"
            raise RunError(f"{path}: expected the name of a data set, found {name!r}")
        return described

    def append_history(self, line: Mapping[str, Any]) -> None:
        """Add a line to the history; it is on disk when this returns."""
        try:
            with self.history.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(f"cannot write {self.history}: {error.strerror}") from None

    def read_history(self) -> list[HistoryLine]:
        """Read the epochs so far; a last line that was cut off is dropped."""
        history = []
        for number, text in enumerate(self._history_lines(), start=1):
            location = f"{self.history}:{number}"
            line = parse_record(HistoryLine, text, location)
            if line.epoch != number:
                raise RunError(f"{location}: expected epoch {number}, found epoch {line.epoch}")
            history.append(line)
        return history

    def cut_history(self, last_epoch: int) -> None:
        """Drop what came after an epoch; all epochs up to it must be there."""
        n_epochs = len(self.read_history())
        if n_epochs < last_epoch:
            expected = f"expected the {last_epoch} epochs before the checkpoint"
            raise RunError(f"{self.history}: {expected}, found {n_epochs}")
        kept = self._history_lines()[:last_epoch]
        self._write({"history.jsonl": "".join(f"{line}\n" for line in kept)})

    def _history_lines(self) -> list[str]:
        if not self.history.exists():
            return []
        return self.history.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]

    def _write(self, files: Mapping[str, str]) -> None:
        """Write text files by name; they get their names when all are on the disk."""
        with ExitStack() as stack:
            for name, text in files.items():
                temporary = stack.enter_context(atomic_path(self.path / name))
                temporary.write_text(text, encoding="utf-8")
                sync(temporary)

    def _read_record(self, name: str, kind: type[R]) -> R:
        path = self._existing(name)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            offset = f"another byte at offset {error.start}"
            raise RunError(f"{path}: expected UTF-8, found {offset}") from None
        return parse_record(kind, text, path)

    @contextmanager
    def _weights_file(self) -> Iterator[Path]:
        """Yield the path of the weights; whatever fails means that the file is broken."""
        path = self._existing("weights.safetensors")
        try:
            yield path
        except Exception as error:
            raise RunError(f"{path}: expected weights, found a broken file ({error})") from None

    def _existing(self, name: str) -> Path:
        path = self.path / name
        if path.is_file():
            return path
        if not self.exists():
            raise RunError(f"{self.path} is not a run: there is no config.toml in it")
        if name == "weights.safetensors":
            raise RunError(f"{self.path} has no weights yet; finish it with --resume")
        raise RunError(f"{self.path} has no {name}")

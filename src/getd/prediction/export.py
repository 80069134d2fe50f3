"""A run for other programs: its vectors as tables, its scores as ONNX."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn

from getd.errors import ConfigError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.models.base import RoleTable, ScoringModel
from getd.runs.opened import OpenedRun

Form = Literal["parquet", "npz", "onnx"]
CLOSE = 1e-5
MARK = "export.json"  # says which files are an export
WIDEST = 2**31  # bytes of the names in a table of NumPy, where each takes as much as the longest


def export(
    run: OpenedRun,
    out: Path,
    form: Form,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Write a folder; the files in it. An export that is there is replaced with ``overwrite``; nothing else ever."""
    if out.exists() and not _is_export(out):
        raise RunError(f"{out} is there and is no export; choose another place")
    with atomic_path(out, replace=overwrite) as temporary:
        temporary.mkdir()
        if form == "onnx":
            _onnx(run, temporary, progress)
        else:
            _tables(run, temporary, form)
        files = sorted(path.name for path in temporary.iterdir())
        about = {"of": run.fingerprint(), "form": form, "files": files}
        (temporary / MARK).write_text(json.dumps(about, indent=2), encoding="utf-8")
    return [out / name for name in files]


def _is_export(out: Path) -> bool:
    """Whether a folder holds what was exported, and nothing else."""
    try:
        files = json.loads((out / MARK).read_text(encoding="utf-8"))["files"]
        return sorted([*files, MARK]) == sorted(path.name for path in out.iterdir())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def vectors(run: OpenedRun) -> dict[str, tuple[list[str], Tensor]]:
    """The tables of a model, of entities, relations and roles: the names of their rows and the vectors."""
    kb, model = run.kb, run.model.bare
    tables: dict[str, tuple[list[str], Tensor]] = {}
    for name, table in model.entity_tables().items():
        tables[name] = list(kb.entities), table.weight
    for name, table in model.relation_tables().items():
        tables[name] = _relation_names(kb, table.num_embeddings), table.weight
    for name, roles in model.role_tables().items():
        tables[name] = _role_names(kb, roles), roles.embedding.weight
    return {
        name.removeprefix("inner.").replace(".", "-"): (labels, weight.detach())
        for name, (labels, weight) in tables.items()
    }


def _relation_names(kb: KnowledgeBase, n_rows: int) -> list[str]:
    """The names of the relations; with reciprocal relations, which are rows for each position, at each."""
    if n_rows == kb.n_relations:
        return list(kb.relations)
    positions = range(n_rows // kb.n_relations)
    return [f"{label} at {position}" for position in positions for label in kb.relations]


def _role_names(kb: KnowledgeBase, roles: RoleTable) -> list[str]:
    """The names of the roles; with the relation, where the data does not name its roles."""
    names = [""] * roles.embedding.num_embeddings
    for label, relation, row in zip(kb.relations, kb.signatures, roles.rows.tolist(), strict=True):
        for number, role in zip(row, relation.roles, strict=False):
            names[number] = role if relation.has_named_roles else f"{label} {role}"
    return names


def _tables(run: OpenedRun, out: Path, form: Form) -> None:
    for name, (labels, table) in vectors(run).items():
        if form == "parquet":
            columns = {
                "name": labels,
                "vector": pl.Series(table.numpy(), dtype=pl.Array(pl.Float32, table.shape[1])),
            }
            pl.DataFrame(columns).write_parquet(out / f"{name}.parquet")
        else:
            if 4 * len(labels) * max(map(len, labels), default=0) > WIDEST:
                raise RunError(
                    f"{name}: the longest name makes a NumPy table of names too large; --to parquet is small"
                )
            np.savez(out / f"{name}.npz", names=np.array(labels), vectors=table.numpy())


class _Scores(nn.Module):
    """The scores of questions with one position open."""

    def __init__(self, model: ScoringModel, position: int) -> None:
        super().__init__()
        self.model, self.position = model, position

    def forward(self, relation: Tensor, entities: Tensor) -> Tensor:
        return self.model.score_candidates(relation, entities, self.position)


def _onnx(run: OpenedRun, out: Path, progress: Callable[[int, int], None]) -> None:
    """A graph for each arity and position, checked against the model, and the names of what goes in and comes out."""
    try:
        import onnxruntime  # type: ignore[import-untyped]
        import onnxscript  # noqa: F401
    except ImportError:
        raise ConfigError(
            "exporting to ONNX needs onnx, onnxscript and onnxruntime: pip install 'getd[onnx]'"
        ) from None
    model = run.model.bare.eval()
    places = [(arity, position) for arity in run.kb.arities for position in range(arity)]
    for done, (arity, position) in enumerate(places):
        path = out / f"arity-{arity}-position-{position}.onnx"
        graph = _Scores(model, position).eval()
        relation, entities = _some_questions(run, arity)
        batch = torch.export.Dim("questions", min=1)
        with _quiet(), torch.no_grad():
            try:
                program = torch.onnx.export(
                    graph,
                    (relation, entities),
                    input_names=["relation", "entities"],
                    output_names=["scores"],
                    dynamic_shapes=({0: batch}, {0: batch}),
                    dynamo=True,
                    verbose=False,
                )
            except torch.onnx.OnnxExporterError:
                name = run.folder.read_config()["model"]["name"]
                told = "its scores are not one graph, whatever the questions"
                raise RunError(
                    f"{name} cannot be exported to ONNX: {told}; its vectors can: --to parquet"
                ) from None
            assert program is not None
            program.save(str(path))
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            for number in (len(relation), 1):
                given: dict[str, Any] = {
                    "relation": relation[:number].numpy(),
                    "entities": entities[:number].numpy(),
                }
                (found,) = session.run(["scores"], given)
                wanted = graph(relation[:number], entities[:number]).numpy()
                far = float(np.abs(found - wanted).max() / max(1.0, float(np.abs(wanted).max())))
                if not far <= CLOSE:
                    raise RunError(
                        f"{path.name}: the scores of the graph are {far:.1e} from those of the model"
                    )
        progress(done + 1, len(places))
    about = {"entities": list(run.kb.entities), "relations": list(run.kb.relations)}
    (out / "names.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")


def _some_questions(run: OpenedRun, arity: int) -> tuple[Tensor, Tensor]:
    facts = next(
        blocks[arity] for blocks in run.kb.splits.values() if arity in blocks and len(blocks[arity])
    )
    rows = np.resize(np.arange(min(len(facts), 5)), 5)
    some = facts.take(rows)
    return torch.tensor(some.relation), torch.tensor(some.entities)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter talks much."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "torch.export")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)

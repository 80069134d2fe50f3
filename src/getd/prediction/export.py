"""Export a run for other programs: its vectors as tables, its scores as ONNX graphs."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.export import Dim

from getd.choices import ExportFormat
from getd.errors import ConfigError, RunError
from getd.facts.facts import join
from getd.facts.knowledge_base import KnowledgeBase
from getd.io.atomic import atomic_path
from getd.models.base import RoleTable, ScoringModel
from getd.prediction.answer import Progress
from getd.runs.opened import OpenedRun

MANIFEST = "export.json"  # lists the files of an export
MAX_NAME_BYTES = 2**31  # of a NumPy table of names, in which each takes as much as the longest
GRAPH_TOLERANCE = 1e-5  # relative error of the scores of a graph
EXAMPLE_ROWS = 5  # questions that a graph is made from and checked with


def export(
    run: OpenedRun, out: Path, form: ExportFormat, overwrite: bool, progress: Progress
) -> list[Path]:
    """Write an export as a folder; returns its files.

    ``overwrite`` replaces an export that is there, and never anything else.
    """
    if out.exists() and not _is_export(out):
        raise RunError(f"{out} is there and is no export; choose another place")

    with atomic_path(out, replace=overwrite) as temporary:
        temporary.mkdir()
        if form == "onnx":
            _write_graphs(run, temporary, progress)
        else:
            _write_tables(run, temporary, form)
        files = sorted(path.name for path in temporary.iterdir())
        manifest = {"of": run.fingerprint(), "form": form, "files": files}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    return [out / name for name in files]


def _is_export(out: Path) -> bool:
    """Whether a folder holds an export and nothing else."""
    try:
        files = json.loads((out / MANIFEST).read_text(encoding="utf-8"))["files"]
        return sorted([*files, MANIFEST]) == sorted(path.name for path in out.iterdir())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def vectors(run: OpenedRun) -> dict[str, tuple[list[str], Tensor]]:
    """Return the tables of entities, relations and roles: names of rows, and vectors."""
    kb = run.kb
    model = run.model.bare
    tables = []
    for name, table in model.entity_tables().items():
        tables.append((name, list(kb.entities), table))
    for name, table in model.relation_tables().items():
        tables.append((name, _relation_names(kb, table.num_embeddings), table))
    for name, roles in model.role_tables().items():
        tables.append((name, _role_names(kb, roles), roles.embedding))

    named = {}
    for name, labels, table in tables:
        named[name.removeprefix("inner.").replace(".", "-")] = labels, table.weight.detach()
    return named


def _relation_names(kb: KnowledgeBase, n_rows: int) -> list[str]:
    """Name the rows of a table of relations; reciprocal relations have a row for each position."""
    if n_rows == kb.n_relations:
        return list(kb.relations)
    positions = range(n_rows // kb.n_relations)
    return [f"{label} at {position}" for position in positions for label in kb.relations]


def _role_names(kb: KnowledgeBase, roles: RoleTable) -> list[str]:
    """Name the rows of a table of roles; with the relation, if the data does not name its roles."""
    names = [""] * roles.embedding.num_embeddings
    for label, relation, row in zip(kb.relations, kb.signatures, roles.rows.tolist(), strict=True):
        for number, role in zip(row, relation.roles, strict=False):
            names[number] = role if relation.has_named_roles else f"{label} {role}"
    return names


def _write_tables(run: OpenedRun, out: Path, form: ExportFormat) -> None:
    for name, (labels, table) in vectors(run).items():
        if form == "parquet":
            vector = pl.Series(table.numpy(), dtype=pl.Array(pl.Float32, table.shape[1]))
            pl.DataFrame({"name": labels, "vector": vector}).write_parquet(out / f"{name}.parquet")
            continue

        if 4 * len(labels) * max(map(len, labels), default=0) > MAX_NAME_BYTES:
            raise RunError(
                f"{name}: the longest name makes a NumPy table of names too large; "
                "--to parquet is small"
            )
        np.savez(out / f"{name}.npz", names=np.array(labels), vectors=table.numpy())


def _write_graphs(run: OpenedRun, out: Path, progress: Progress) -> None:
    """Write a graph for each arity and position, and the names of the ids."""
    try:
        import onnxruntime  # type: ignore[import-untyped] # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise ConfigError(
            "exporting to ONNX needs onnx, onnxscript and onnxruntime: pip install 'getd[onnx]'"
        ) from None

    model = run.model.bare.eval()
    facts = join(*run.kb.splits.values())
    slots = [(arity, position) for arity in run.kb.arities for position in range(arity)]
    for done, (arity, position) in enumerate(slots):
        path = out / f"arity-{arity}-position-{position}.onnx"
        graph = _Scores(model, position).eval()
        rows = np.resize(np.arange(len(facts[arity])), EXAMPLE_ROWS)
        questions = facts[arity].take(rows).to_tensors()
        with _quiet(), torch.no_grad():
            try:
                _save_graph(graph, questions, path)
            except torch.onnx.OnnxExporterError:
                name = run.folder.read_config().model_name
                raise RunError(
                    f"{name} cannot be exported to ONNX: its scores are not one graph, "
                    "whatever the questions; its vectors can: --to parquet"
                ) from None
            _check_graph(graph, questions, path)
        progress(done + 1, len(slots))

    names = {"entities": list(run.kb.entities), "relations": list(run.kb.relations)}
    (out / "names.json").write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")


class _Scores(nn.Module):
    """Scores questions with one position open."""

    def __init__(self, model: ScoringModel, position: int) -> None:
        super().__init__()
        self.model = model
        self.position = position

    def forward(self, relation: Tensor, entities: Tensor) -> Tensor:
        return self.model.score_candidates(relation, entities, self.position)


def _save_graph(graph: _Scores, questions: tuple[Tensor, Tensor], path: Path) -> None:
    n_questions = Dim("questions", min=1)
    program = torch.onnx.export(
        graph,
        questions,
        input_names=["relation", "entities"],
        output_names=["scores"],
        dynamic_shapes=({0: n_questions}, {0: n_questions}),
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(str(path))


def _check_graph(graph: _Scores, questions: tuple[Tensor, Tensor], path: Path) -> None:
    """Refuse a graph whose scores are not those of the model, for many questions and for one."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for number in (EXAMPLE_ROWS, 1):
        relation, entities = (tensor[:number] for tensor in questions)
        inputs = {"relation": relation.numpy(), "entities": entities.numpy()}
        (scores,) = session.run(["scores"], inputs)

        expected = graph(relation, entities).numpy()
        scale = max(1.0, float(abs(expected).max()))
        error = float(abs(scores - expected).max() / scale)
        if not error <= GRAPH_TOLERANCE:
            raise RunError(
                f"{path.name}: the scores of the graph are {error:.1e} from those of the model"
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, which logs and warns much."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)

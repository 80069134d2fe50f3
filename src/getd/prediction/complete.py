"""The most probable missing facts of a relation: what else could complete its known facts."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from getd.errors import ConfigError, RunError
from getd.evaluation.precision import Settled
from getd.facts.escape import escape
from getd.facts.facts import Facts, join
from getd.facts.knowledge_base import KnowledgeBase
from getd.facts.vocabulary import write_lines
from getd.io.atomic import atomic_path
from getd.prediction.answer import SCORE_BUDGET, Answerer, Progress
from getd.prediction.question import fill_positions

BATCH_ROWS = 256  # questions in a batch
TRIED = 5  # answers of each question
ENDINGS = (".tsv", ".txt", ".jsonl", ".parquet")


@dataclass(frozen=True)
class CompletionRequest:
    """What to complete; a partial file is resumed only with the same request."""

    run: str  # the fingerprint of the run
    relation: int
    top: int
    min_confidence: float
    precision: Settled = "fp32"  # of scores


class MissingFact(NamedTuple):
    """A fact of the relation that the data does not have."""

    entities: tuple[int, ...]
    plausibility: float
    confidence: float


MissingFacts = list[MissingFact]


def complete(
    answerer: Answerer,
    request: CompletionRequest,
    out: Path,
    progress: Progress = lambda done, total: None,
    overwrite: bool = False,
) -> int:
    """Write the most probable missing facts of a relation to a file; returns their number.

    The facts so far are kept in ``OUT.partial``; the same request resumes from there.
    """
    if out.suffix not in ENDINGS:
        raise ConfigError(f"{out}: expected a name that ends in {', '.join(ENDINGS)}")
    kb = answerer.kb
    arity = kb.signatures[request.relation].arity
    if str(arity) not in answerer.calibration.confidence:
        raise RunError(
            f"this run has no confidence for facts of {arity} entities; "
            "getd calibrate fits it, where validation has such facts"
        )
    if out.exists() and not overwrite:
        raise RunError(f"{out} exists; choose another place or pass --overwrite")
    if out.is_dir():
        raise RunError(f"{out} is a folder; choose the name of a file")

    answerer = replace(answerer, precision=request.precision)
    questions = _questions(kb, request.relation, arity)
    total = sum(len(facts) for facts in questions)
    partial = out.with_name(f"{out.name}.partial")
    done, best = _resume(partial, request)

    # Batches that a partial file counts as done are skipped.
    batch_rows = max(1, min(BATCH_ROWS, SCORE_BUDGET // kb.n_entities))
    end = 0
    for position, facts in enumerate(questions):
        for start in range(0, len(facts), batch_rows):
            batch = facts.take(slice(start, start + batch_rows))
            end += len(batch)
            if end > done:
                new = _missing_facts(answerer, batch, position, request.min_confidence)
                best = _merge(best, new, request.top)
                _save(partial, request, end, best)
                progress(end, total)

    _write(kb, request.relation, best, out)
    partial.unlink(missing_ok=True)
    return len(best)


def _questions(kb: KnowledgeBase, relation: int, arity: int) -> list[Facts]:
    """Return, for each position, the known facts of the relation without it, each once."""
    every = join(*kb.splits.values())[arity]
    facts = every.take(every.relation == relation)
    return [_distinct(fill_positions(facts, position, 0)) for position in range(arity)]


def _distinct(facts: Facts) -> Facts:
    """Keep each fact of one relation once, in the order of their entities."""
    entities = np.unique(facts.entities, axis=0)
    return Facts(np.resize(facts.relation, len(entities)), entities)


def _missing_facts(
    answerer: Answerer, questions: Facts, position: int, min_confidence: float
) -> MissingFacts:
    """Fill a position with its best answers; keep the facts that are confident enough."""
    facts = _distinct(answerer.fill_best(questions, position, TRIED))
    evidence = answerer.evidence(facts)
    entities = map(tuple, facts.entities.tolist())
    confidence = np.array(evidence.confidence, dtype=float).tolist()
    columns = (entities, evidence.plausibility.tolist(), confidence)
    filled = [MissingFact(*values) for values in zip(*columns, strict=True)]
    return [fact for fact in filled if fact.confidence >= min_confidence]


def _merge(best: MissingFacts, new: MissingFacts, top: int) -> MissingFacts:
    """Keep the most confident facts, each once; of equal ones the more plausible."""
    by_entities = {fact.entities: fact for fact in [*best, *new]}
    facts = list(by_entities.values())
    facts.sort(key=lambda fact: (-fact.confidence, -fact.plausibility, fact.entities))
    return facts[:top]


def _resume(partial: Path, request: CompletionRequest) -> tuple[int, MissingFacts]:
    """Read the number of questions that are done, and the best facts so far."""
    if not partial.exists():
        return 0, []
    try:
        state = json.loads(partial.read_text(encoding="utf-8"))
        done = int(state["done"])
        columns = [state[key] for key in MissingFact._fields]
        best = [
            MissingFact(tuple(map(int, entities)), plausibility, confidence)
            for entities, plausibility, confidence in zip(*columns, strict=True)
        ]
        is_same = state["asked"] == asdict(request)
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{partial} is broken; remove it to start again") from None

    if not is_same:
        raise RunError(
            f"{partial} was begun with another run or other settings; "
            "remove it or choose another name"
        )
    return done, best


def _save(partial: Path, request: CompletionRequest, done: int, best: MissingFacts) -> None:
    columns = {key: [getattr(fact, key) for fact in best] for key in MissingFact._fields}
    state = {"asked": asdict(request), "done": done, **columns}
    with atomic_path(partial) as temporary:
        temporary.write_text(json.dumps(state), encoding="utf-8")


def _write(kb: KnowledgeBase, relation: int, best: MissingFacts, out: Path) -> None:
    """Write facts with their confidence and plausibility, in the form that the file name says."""
    rows: list[tuple[Any, ...]] = []
    for fact in best:
        names = kb.entities.decode(fact.entities)
        rows.append((kb.relations[relation], *names, fact.confidence, fact.plausibility))

    with atomic_path(out) as temporary:
        if out.suffix == ".parquet":
            names = _column_names(kb.signatures[relation].roles)
            schema: dict[str, Any] = dict.fromkeys(["relation", *names], pl.String)
            schema |= {"confidence": pl.Float64, "plausibility": pl.Float64}
            pl.DataFrame(rows, schema, orient="row").write_parquet(temporary)
            return

        lines = []
        for label, *entities, confidence, plausibility in rows:
            if out.suffix == ".jsonl":
                record = {"relation": label, "entities": entities}
                record |= {"confidence": confidence, "plausibility": plausibility}
                lines.append(json.dumps(record, ensure_ascii=False))
            else:
                cells = [*map(escape, (label, *entities))]
                cells += [f"{confidence:.6f}", f"{plausibility:.6f}"]
                lines.append("\t".join(cells))
        write_lines(temporary, pl.Series(lines, dtype=pl.String))


def _column_names(roles: Sequence[str]) -> list[str]:
    """Name the columns of roles; a role whose name is taken gets its position, until it is free.

    >>> _column_names(("a", "a_1", "a", "relation"))
    ['a', 'a_1', 'a_2', 'relation_3']
    """
    taken = ["relation", "confidence", "plausibility"]
    for position, role in enumerate(roles):
        name = role
        while name in taken or (name != role and name in roles):
            name = f"{name}_{position}"
        taken.append(name)
    return taken[3:]

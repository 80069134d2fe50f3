"""The most probable missing facts of a relation: every partial fact that is known is asked for what completes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from getd.arrays import Ids
from getd.errors import ConfigError, RunError
from getd.facts.escape import escape_expr
from getd.facts.facts import Facts, join
from getd.facts.vocabulary import write_lines
from getd.io.atomic import atomic_path
from getd.prediction.answer import ROOM, Answerer, best_columns

AT_ONCE = 256  # questions
TRIED = 5  # answers of each
ENDINGS = (".tsv", ".txt", ".jsonl", ".parquet")


@dataclass(frozen=True)
class CompletionRequest:
    """What is asked for; a file that was begun goes on only with the same."""

    run: str  # what tells it from every other run: :meth:`Run.fingerprint`
    relation: int
    top: int
    min_confidence: float

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return dict(self.__dict__)


@dataclass
class _Best:
    """The best facts so far: of most confidence first, of equal ones the more plausible."""

    entities: Ids  # (n, arity)
    plausibility: list[float]
    confidence: list[float]

    def add(
        self, facts: Facts, plausibility: list[float], confidence: list[float], top: int
    ) -> None:
        found: dict[tuple[int, ...], tuple[float, float]] = {}
        for fact, *numbers in zip(
            [*self.entities.tolist(), *facts.entities.tolist()],
            [*self.plausibility, *plausibility],
            [*self.confidence, *confidence],
            strict=True,
        ):
            found[tuple(fact)] = (numbers[0], numbers[1])
        kept = sorted(found.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))[:top]
        self.entities = np.array([fact for fact, _ in kept], dtype=np.int64).reshape(
            -1, self.entities.shape[1]
        )
        self.plausibility = [numbers[0] for _, numbers in kept]
        self.confidence = [numbers[1] for _, numbers in kept]


def complete(
    answerer: Answerer,
    asked: CompletionRequest,
    out: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    overwrite: bool = False,
) -> int:
    """Write the most probable missing facts of a relation to a file; how many there are.

    What is done so far stands in ``OUT.partial``, and goes on from there when it is asked for again.
    """
    if out.suffix not in ENDINGS:
        raise ConfigError(f"{out}: expected a name that ends in {', '.join(ENDINGS)}")
    arity = answerer.kb.signatures[asked.relation].arity
    if str(arity) not in answerer.calibration.confidence:
        told = f"this run has no confidence for facts of {arity} entities"
        raise RunError(f"{told}; getd calibrate fits it, where validation has such facts")
    if out.exists() and not overwrite:
        raise RunError(f"{out} exists; choose another place or pass --overwrite")
    if out.is_dir():
        raise RunError(f"{out} is a folder; choose the name of a file")
    questions = _questions(answerer, asked.relation, arity)
    total = sum(len(facts) for facts in questions)
    partial = out.with_name(f"{out.name}.partial")
    done, best = _resume(partial, asked, arity)
    start, at_once = 0, max(1, min(AT_ONCE, ROOM // answerer.kb.n_entities))
    for position, facts in enumerate(questions):
        for first in range(0, len(facts), at_once):
            if start >= done:
                _ask(answerer, facts.take(slice(first, first + at_once)), position, asked, best)
                done = start + min(at_once, len(facts) - first)
                _save(partial, asked, done, best)
                progress(done, total)
            start += min(at_once, len(facts) - first)
    _write(answerer, asked, best, out)
    partial.unlink(missing_ok=True)
    return len(best.plausibility)


def _questions(answerer: Answerer, relation: int, arity: int) -> list[Facts]:
    """For each position, the known facts of the relation without it, each once."""
    every = join(*answerer.kb.splits.values())[arity]
    facts = every.take(every.relation == relation)
    found = []
    for position in range(arity):
        entities = facts.entities.copy()
        entities[:, position] = 0
        distinct = np.unique(entities, axis=0)
        found.append(Facts(np.full(len(distinct), relation), distinct))
    return found


def _ask(
    answerer: Answerer, facts: Facts, position: int, asked: CompletionRequest, best: _Best
) -> None:
    ranked = answerer.ranked_scores(facts, position)
    rows, columns = best_columns(ranked, TRIED)
    entities = facts.entities[rows.numpy()].copy()
    entities[:, position] = columns.numpy()
    distinct = np.unique(entities, axis=0)
    made = Facts(np.full(len(distinct), asked.relation), distinct)
    found = answerer.evidence(made)
    confidence = np.array(found.confidence, dtype=float)
    kept = confidence >= asked.min_confidence
    best.add(
        made.take(kept), found.plausibility[kept].tolist(), confidence[kept].tolist(), asked.top
    )


def _resume(partial: Path, asked: CompletionRequest, arity: int) -> tuple[int, _Best]:
    empty = _Best(np.zeros((0, arity), dtype=np.int64), [], [])
    if not partial.exists():
        return 0, empty
    try:
        kept = json.loads(partial.read_text(encoding="utf-8"))
        entities = np.array(kept["entities"], dtype=np.int64).reshape(-1, arity)
        found = (
            int(kept["done"]),
            _Best(entities, list(kept["plausibility"]), list(kept["confidence"])),
        )
        same = kept["asked"] == asked.as_dict()
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{partial} is broken; remove it to begin anew") from None
    if not same:
        raise RunError(
            f"{partial} was begun with another run or other settings; remove it or choose another name"
        )
    return found


def _save(partial: Path, asked: CompletionRequest, done: int, best: _Best) -> None:
    state = {"asked": asked.as_dict(), "done": done, "entities": best.entities.tolist()}
    state |= {"plausibility": best.plausibility, "confidence": best.confidence}
    with atomic_path(partial) as temporary:
        temporary.write_text(json.dumps(state), encoding="utf-8")


def _write(answerer: Answerer, asked: CompletionRequest, best: _Best, out: Path) -> None:
    kb = answerer.kb
    roles = kb.signatures[asked.relation].roles
    names = [kb.entities.decode(column) for column in best.entities.T] or [[] for _ in roles]
    label = kb.relations[asked.relation]
    numbers = {"confidence": best.confidence, "plausibility": best.plausibility}
    text: dict[str, list[str]] = {"relation": [label] * len(best.plausibility)}
    text |= dict(zip(_columns(roles), names, strict=True))
    with atomic_path(out) as temporary:
        if out.suffix == ".parquet":
            pl.DataFrame({**text, **numbers}).write_parquet(temporary)
        elif out.suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as file:
                for *entities, confidence, plausibility in zip(
                    *names, *numbers.values(), strict=True
                ):
                    record = {"relation": label, "entities": entities}
                    record |= {"confidence": confidence, "plausibility": plausibility}
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            told = [
                *text.values(),
                *([f"{value:.6f}" for value in values] for values in numbers.values()),
            ]
            frame = pl.DataFrame(
                {
                    str(place): pl.Series(column, dtype=pl.String)
                    for place, column in enumerate(told)
                }
            )
            line = pl.concat_str(
                [escape_expr(pl.col(name)) for name in frame.columns], separator="\t"
            )
            write_lines(temporary, frame.select(line).to_series())


def _columns(roles: tuple[str, ...]) -> list[str]:
    """Names of columns: a role that has the name of a column before it gets its position, as often as it must.

    >>> _columns(("a", "a_1", "a", "relation"))
    ['a', 'a_1', 'a_2', 'relation_3']
    """
    taken = ["relation", "confidence", "plausibility"]
    for place, role in enumerate(roles):
        name = role
        while name in taken or (name != role and name in roles):
            name = f"{name}_{place}"
        taken.append(name)
    return taken[3:]

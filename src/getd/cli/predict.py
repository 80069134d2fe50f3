"""``getd predict``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from getd.cli.flags import Json
from getd.cli.show import print_json, print_notices, print_table
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.prediction.question import Question
    from getd.prediction.run import Answer


def predict(
    run: Path,
    /,
    *question: str,
    top: Annotated[int, Parameter(help="How many answers.")] = 10,
    include_known: Annotated[bool, Parameter(help="Show answers that the data has already, too.", negative="")] = False,
    questions: Annotated[
        Path | None, Parameter(help="A file of questions, in any form that facts are read from.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question: RELATION E1 '?' E3 …, or by role: RELATION player='?' club=Bulls; '?' as RELATION asks for it.

    Parameters
    ----------
    run
        The folder that training left.
    question
        The relation and its entities, '?' for what is asked.
    """
    from getd.prediction.question import parse_question
    from getd.prediction.questions import read_questions
    from getd.prediction.run import open_run

    if (questions is None) == (not question):
        raise ConfigError("ask one question, or name a file with --questions")
    if top < 1:
        raise ConfigError(f"expected --top of 1 or more, found {top}")
    opened = open_run(run)
    if questions is not None:
        asked = read_questions(questions, opened.kb)
    else:
        relation, *entities = question
        asked = [parse_question(opened.kb, relation, _roles(entities, opened.kb.entities))]
    if any(one.position is None for one in asked) and not opened.folder.read_config()["training"].get("relation_loss"):
        print_notices(["this run was trained without relation_loss, so it has not learnt to rank relations"])
    answered = [(one, opened.answer(one, top, include_known)) for one in asked]
    if json:
        records = [_record(one, answers) for one, answers in answered]
        print_json(records[0] if questions is None else {"answers": records})
        return
    for one, answers in answered:
        show_answers(one, answers)


def _roles(entities: Sequence[str], names: Any) -> Sequence[str] | Mapping[str, str]:
    """``role=name`` for all, or names in order; a name that holds ``=`` and is known stands for itself."""
    if entities and all("=" in entity and entity not in names for entity in entities):
        return dict(entity.split("=", 1) for entity in entities)
    return entities


def _record(question: Question, answers: Sequence[Answer]) -> dict[str, Any]:
    kind = "relation" if question.position is None else "entity"
    return {
        "question": list(question.text),
        "answers": [{kind: a.name, "score": a.score, "probability": a.probability, "known": a.known} for a in answers],
    }


def show_answers(question: Question, answers: Sequence[Answer], right: str | None = None) -> None:
    """The answers of a question as a table, with the right one marked where it is known."""
    relation, *entities = question.text
    marks = ["right" if answer.name == right else "known" if answer.known else "" for answer in answers]
    rows = [[answer.name, answer.probability, answer.score, mark] for answer, mark in zip(answers, marks, strict=True)]
    print_table(f"{relation}({', '.join(entities)})", ["answer", "probability", "score", ""], rows)

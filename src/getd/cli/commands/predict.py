"""``getd predict``."""

from __future__ import annotations

import shlex
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from getd.cli.inputs import open_run
from getd.cli.options import Format, Json, RunPath, flag, read_format
from getd.cli.output import fact_text, print_json, print_line, print_notices
from getd.cli.reports import guess_notices, show_answers
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd import Answer, Explanation, KnowledgeBase, Question, Run


def predict(
    run: RunPath,
    /,
    *question: Annotated[str, Parameter(help="Relation and entities, with ? for what to predict.")],
    top: Annotated[int, Parameter(help="Number of answers.")] = 10,
    include_known: Annotated[bool, flag("Include answers that are already known.")] = False,
    why: Annotated[bool, flag("Show the training facts that support each answer most.")] = False,
    questions: Annotated[
        Path | None, Parameter(help="File of questions in any supported format.")
    ] = None,
    format: Format = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Answer a question: fill in the ? of a fact.

    Give the entities in order, RELATION E1 '?' E3 …, or by role, RELATION player='?' club=Bulls. By
    role, the only relation of a run need not be named. Up to three entities may be open at once.
    '?' as RELATION predicts the relation.
    """
    if (questions is None) == (not question):
        raise ConfigError("ask one question, or name a file with --questions")
    if top < 1:
        raise ConfigError(f"expected --top of 1 or more, found {top}")

    from getd.prediction.records import answered_record

    opened = open_run(run)
    if questions is not None:
        parsed = opened.read_questions(questions, read_format(format))
    else:
        relation, entities = _split_question(question, opened.kb)
        parsed = [opened.question(relation, entities)]
    print_notices(_notices(opened, parsed))

    records = []
    for current, answers in zip(parsed, opened.answer(parsed, top, include_known), strict=True):
        reasons: list[list[Explanation]] = []
        if why and current.open:
            reasons = [opened.explain_answer(current, answer) for answer in answers]

        if json:
            records.append(answered_record(current, answers, reasons).as_dict())
            continue
        show_answers(current, answers)
        for answer, explanations in zip(answers, reasons, strict=False):
            _show_reasons(answer, explanations)
    if json:
        print_json(records[0] if questions is None else {"answers": records})


def _split_question(
    question: Sequence[str], kb: KnowledgeBase
) -> tuple[str, Sequence[str] | dict[str, list[str]]]:
    """The relation and the entities; by role, the only relation may be left out."""
    relation, *entities = question
    all_by_role = _by_role(question, kb.entities)
    is_relation = relation in kb.relations or relation in kb.relations_named
    if kb.n_relations == 1 and isinstance(all_by_role, dict) and not is_relation:
        return kb.only_relation, all_by_role
    return relation, _by_role(entities, kb.entities)


def _by_role(
    entities: Sequence[str], names: Container[str]
) -> Sequence[str] | dict[str, list[str]]:
    """Read ``role=name`` if every entity is written so; known names that hold ``=`` are names."""
    if not entities or not all("=" in entity and entity not in names for entity in entities):
        return entities
    by_role: dict[str, list[str]] = {}
    for entity in entities:
        role, _, name = entity.partition("=")
        by_role.setdefault(role, []).append(name)
    return by_role


def _notices(run: Run, questions: Sequence[Question]) -> list[str]:
    notices = guess_notices(run, questions)
    asks_relation = any(question.position is None for question in questions)
    if asks_relation and not run.folder.read_config().learns_relations:
        notices.append(
            "this run was trained without relation_loss, so it has not learnt to rank relations"
        )

    can_calibrate = "valid" in run.kb.splits
    if can_calibrate and not run.calibration.confidence and not run.notices:
        path = shlex.quote(str(run.path))
        notices.append(
            f"this run is not calibrated; getd calibrate {path} gives its answers confidence"
        )
    return notices


def _show_reasons(answer: Answer, reasons: Sequence[Explanation]) -> None:
    for name, explanation in zip(answer.names, reasons, strict=False):
        print_line(f"{name}, because")
        for reason in explanation.facts:
            print_line(f"  {reason.pull:6.1%}  {fact_text(reason.fact)}")
        if explanation.similar:
            print_line(f"  most similar: {', '.join(explanation.similar)}")
        print_line()

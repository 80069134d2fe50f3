"""``getd predict``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from getd.cli.options import Form, Json, chosen
from getd.cli.output import print_json, print_line, print_notices, print_table
from getd.errors import ConfigError

if TYPE_CHECKING:
    from getd.facts.parse import Names
    from getd.prediction.answer import Answer
    from getd.prediction.explain import Explanation
    from getd.prediction.question import Question


def predict(
    run: Path,
    /,
    *question: str,
    top: Annotated[int, Parameter(help="How many answers.")] = 10,
    include_known: Annotated[
        bool, Parameter(help="Show answers that the data has already, too.", negative="")
    ] = False,
    why: Annotated[
        bool, Parameter(help="Show the training facts that support each answer most.", negative="")
    ] = False,
    questions: Annotated[
        Path | None, Parameter(help="A file of questions, in any form that facts are read from.")
    ] = None,
    format: Form = "auto",  # noqa: A002
    json: Json = False,
) -> None:
    """Answer a question: RELATION E1 '?' E3 …, or by role: RELATION player='?' club=Bulls; '?' as RELATION asks for it.

    Up to three entities may be open at once.

    Parameters
    ----------
    run
        The folder that training left.
    question
        The relation and its entities, '?' for what is asked.
    """
    from getd.cli.opening import open_run
    from getd.prediction.question import parse_question
    from getd.prediction.questions import read_questions

    if (questions is None) == (not question):
        raise ConfigError("ask one question, or name a file with --questions")
    if top < 1:
        raise ConfigError(f"expected --top of 1 or more, found {top}")
    opened = open_run(run)
    if questions is not None:
        asked = read_questions(questions, opened.kb, chosen(format))
    else:
        relation, *entities = question
        asked = [parse_question(opened.kb, relation, _roles(entities, opened.kb.entities))]
    if any(one.position is None for one in asked) and not _learnt_relations(
        opened.folder.read_config()
    ):
        print_notices(
            ["this run was trained without relation_loss, so it has not learnt to rank relations"]
        )
    if not opened.calibration.confidence and not opened.notices:
        print_notices(
            [f"this run was not calibrated; getd calibrate {run} gives its answers confidence"]
        )
    answered = list(zip(asked, opened.answer(asked, top, include_known), strict=True))
    reasons = {
        (row, place): opened.predictor.explain(one, answer)
        for row, (one, answers) in enumerate(answered)
        for place, answer in enumerate(answers)
        if why and one.open
    }
    if json:
        records = [
            _record(one, answers, [reasons.get((row, place), []) for place in range(len(answers))])
            for row, (one, answers) in enumerate(answered)
        ]
        print_json(records[0] if questions is None else {"answers": records})
        return
    for row, (one, answers) in enumerate(answered):
        show_answers(one, answers)
        for place, answer in enumerate(answers):
            _show_reasons(answer, reasons.get((row, place), []))


def _learnt_relations(config: Mapping[str, Any]) -> bool:
    return bool(config.get("training", {}).get("relation_loss"))


def _roles(entities: Sequence[str], names: Any) -> Names:
    """``role=name`` for all, or names in order; a name that holds ``=`` and is known stands for itself."""
    if not entities or not all("=" in entity and entity not in names for entity in entities):
        return entities
    found: dict[str, list[str]] = {}
    for role, _, name in (entity.partition("=") for entity in entities):
        found.setdefault(role, []).append(name)
    return found


def _record(
    question: Question, answers: Sequence[Answer], reasons: Sequence[Sequence[Explanation]]
) -> dict[str, Any]:
    return {
        "question": list(question.text),
        "answers": [answer_record(question, *each) for each in zip(answers, reasons, strict=True)],
    }


def answer_record(
    question: Question, answer: Answer, reasons: Sequence[Explanation] = ()
) -> dict[str, Any]:
    """An answer for JSON."""
    if len(question.open) > 1:
        named: dict[str, Any] = {"entities": list(answer.names)}
    else:
        named = {"entity" if question.open else "relation": answer.name}
    numbers = {
        "score": answer.score,
        "probability": answer.probability,
        "confidence": answer.confidence,
    }
    record = {**named, **numbers, "known": answer.known}
    if reasons:
        record["why"] = [
            {
                "facts": [
                    {"fact": list(reason.fact), "pull": reason.pull} for reason in each.facts
                ],
                "similar": list(each.similar),
            }
            for each in reasons
        ]
    return record


def _show_reasons(answer: Answer, reasons: Sequence[Explanation]) -> None:
    for name, each in zip(answer.names, reasons, strict=False):
        print_line(f"{name}, because")
        for reason in each.facts:
            relation, *entities = reason.fact
            print_line(f"  {reason.pull:6.1%}  {relation}({', '.join(entities)})")
        if each.similar:
            print_line(f"  most alike: {', '.join(each.similar)}")
        print()


def show_answers(question: Question, answers: Sequence[Answer], right: str | None = None) -> None:
    """The answers of a question as a table, with the right one marked where it is known."""
    relation, *entities = question.text
    marks = [
        "right" if answer.name == right else "known" if answer.known else "" for answer in answers
    ]
    header: list[str] = ["answer"]
    shown: list[Callable[[Answer], object]] = [lambda answer: answer.name]
    columns: list[tuple[str, Callable[[Answer], object]]] = [
        ("probability", lambda answer: answer.probability),
        ("confidence", lambda answer: answer.confidence),
        ("plausibility" if len(question.open) > 1 else "score", lambda answer: answer.score),
    ]
    for name, value in columns:
        if any(value(answer) is not None for answer in answers):
            header.append(name)
            shown.append(value)
    rows = [
        [*(value(answer) for value in shown), mark]
        for answer, mark in zip(answers, marks, strict=True)
    ]
    print_table(f"{relation}({', '.join(entities)})", [*header, ""], rows)

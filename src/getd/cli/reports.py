"""Results that several commands show: a finished training, an evaluation, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from getd.cli.output import fact_text, print_json, print_line, print_notices, print_table

if TYPE_CHECKING:
    from getd import Answer, Evaluation, Question, Run

METRICS = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}
MAX_NAMES = 3  # in a notice
values_of = attrgetter(*METRICS)  # the metrics that tables show


def show_training(run: Run, json: bool, has_budget: bool = False) -> None:
    """Show a finished training: its report on test, and where its files are.

    If it had a budget, show what that was spent on, too.
    """
    budget = run.folder.read_json("budget.json") if has_budget else None
    report = run.folder.read_report() if "test" in run.kb.splits else None
    if find_spec("matplotlib") is None:
        print_notices(["learning curves need matplotlib: pip install 'getd[plots]'"])
    print_notices(run.notices)

    if json:
        result: dict[str, Any] = {"run": str(run.path), "epochs": len(run.folder.read_history())}
        result["report"] = report.as_dict() if report else None
        result["notices"] = run.notices
        print_json(result | ({"budget": budget} if budget else {}))
        return

    if budget:
        show_budget(budget)
    if report:
        show_report(report, run.folder.read_config().get("published"))
    curves = run.path / "curves.svg"
    print_line(f"run: {run.path}{f', learning curves: {curves}' if curves.exists() else ''}")


def show_budget(budget: Mapping[str, Any]) -> None:
    """Show the candidates of a search, and why the winner won."""
    rows: list[list[object]] = []
    for candidate in budget["candidates"]:
        epochs = f"{candidate['epochs']} of {candidate['planned_epochs']}"
        seconds = round(candidate["seconds"])
        rows.append(
            [
                candidate["name"],
                candidate["model"],
                candidate["standing"],
                epochs,
                seconds,
                candidate["valid_mrr"],
            ]
        )
    for comparison in budget["comparisons"]:
        if len(comparison["members"]) > 1:
            together = " + ".join(comparison["members"])
            rows.append([together, "combined", "", "", None, comparison["valid_mrr"]])

    title = f"Validation, {budget['seconds'] / 60:.1f} of {budget['minutes']:g} minutes"
    header = ["candidate", "model", "standing", "epochs", "seconds", "MRR"]
    print_table(title, header, rows, left=4)
    print_line(f"winner: {' + '.join(budget['winner'])}; {budget['reason']}")


def show_report(report: Evaluation, published: Mapping[str, float] | None = None) -> None:
    """Show metrics next to the baselines, to chance and to what was published."""
    low, high = report.mrr_interval
    rows = [["this model", *values_of(report.metrics), f"{low:.4f} – {high:.4f}"]]
    for name, baseline in report.baselines.items():
        rows.append([f"baseline: {name}", *values_of(baseline), ""])
    rows.append(["random order", report.mrr_at_chance, None, None, None, ""])
    if published:
        rows.append(["published", *map(published.get, METRICS), ""])

    protocol = report.protocol
    title = f"{protocol.split}: {report.questions:,} questions, filtered, ties {protocol.ties}"
    print_table(title, ["", *METRICS.values(), "95 % of MRR"], rows)
    print_line(f"protocol: {protocol.sentence()}")


def show_answers(question: Question, answers: Sequence[Answer], right: str | None = None) -> None:
    """Show the answers to a question as a table, with the right one marked if it is known."""
    score = "plausibility" if len(question.open) > 1 else "score"
    columns = {"probability": "probability", "confidence": "confidence", score: "score"}
    for title, name in list(columns.items()):
        if all(getattr(answer, name) is None for answer in answers):
            del columns[title]

    rows = []
    for answer in answers:
        mark = "known" if answer.known else ""
        if answer.name == right:
            mark = "right"
        values = [getattr(answer, name) for name in columns.values()]
        rows.append([answer.name, *values, mark])
    print_table(fact_text(question.text), ["answer", *columns, ""], rows)


def guess_notices(run: Run, questions: Sequence[Question]) -> list[str]:
    """Say which names in questions no training fact has, if there are any."""
    from getd.prediction.question import names_without_facts

    names = names_without_facts(run.kb, questions)
    if not names:
        return []
    shown = ", ".join(map(repr, names[:MAX_NAMES]))
    if len(names) > MAX_NAMES:
        shown += f" and {len(names) - MAX_NAMES:,} more"

    verb = "has" if len(names) == 1 else "have"
    pronoun = "it" if len(names) == 1 else "them"
    return [f"{shown} {verb} no training fact, so answers about {pronoun} are guesses"]

"""Results that several commands show: a finished training, an evaluation, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from getd.cli.output import fact_text, print_json, print_line, print_notices, print_table

if TYPE_CHECKING:
    from getd import Answer, Evaluation, Question, Run
    from getd.evaluation.metrics import Metrics

METRICS = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_3": "Hits@3", "hits_at_10": "Hits@10"}


def show_training(run: Run, json: bool) -> None:
    """Show a finished training: its report on test, and where its files are."""
    report = run.folder.read_report() if "test" in run.kb.splits else None
    if find_spec("matplotlib") is None:
        print_notices(["learning curves need matplotlib: pip install 'getd[plots]'"])
    print_notices(run.notices)

    if json:
        result = {"run": str(run.path), "epochs": len(run.folder.read_history())}
        record = report.as_dict() if report else None
        print_json({**result, "report": record, "notices": run.notices})
        return

    if report:
        show_report(report, run.folder.read_config().published)
    curves = run.path / "curves.svg"
    print_line(f"run: {run.path}{f', learning curves: {curves}' if curves.exists() else ''}")


def show_report(report: Evaluation, published: Mapping[str, float] | None = None) -> None:
    """Show metrics next to the baselines, to chance and to what was published."""
    low, high = report.mrr_interval
    rows = [["this model", *values_of(report.metrics), f"{low:.4f} – {high:.4f}"]]
    for name, baseline in report.baselines.items():
        rows.append([f"baseline: {name}", *values_of(baseline), ""])
    rows.append(["random order", report.mrr_at_chance, None, None, None, ""])
    if published:
        rows.append(["published", *(published.get(key) for key in METRICS), ""])

    protocol = report.protocol
    title = f"{protocol.split}: {report.questions:,} questions, filtered, ties {protocol.ties}"
    print_table(title, ["", *METRICS.values(), "95 % of MRR"], rows)
    print_line(f"protocol: {protocol.sentence()}")


def values_of(metrics: Metrics) -> list[object]:
    """Return the metrics that tables show."""
    return [getattr(metrics, key) for key in METRICS]


def show_answers(question: Question, answers: Sequence[Answer], right: str | None = None) -> None:
    """Show the answers to a question as a table, with the right one marked if it is known."""
    score = "plausibility" if len(question.open) > 1 else "score"
    columns: dict[str, list[float | None]] = {
        "probability": [answer.probability for answer in answers],
        "confidence": [answer.confidence for answer in answers],
        score: [answer.score for answer in answers],
    }
    measured = {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }

    rows = []
    for index, answer in enumerate(answers):
        mark = "right" if answer.name == right else "known" if answer.known else ""
        rows.append([answer.name, *(values[index] for values in measured.values()), mark])
    print_table(fact_text(question.text), ["answer", *measured, ""], rows)

"""Tables as a user sees them: every figure under its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from getd.api import open_run
from getd.cli import reports
from getd.cli.app import main
from getd.cli.commands.predict import _show_reasons
from getd.cli.output import cell
from getd.cli.reports import show_answers, show_training
from getd.datasets.catalogue import DATASETS, GENERATED
from getd.facts.facts import Facts
from getd.prediction.answer import Answer
from getd.prediction.explain import Explanation, Reason
from getd.prediction.question import Question
from tests.conftest import Result

Getd = Callable[..., Result]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown")
    facts = [f"r\ta{i}\tb{i % 3}\tc{i % 5}\n" for i in range(40)]
    for split, part in (("train", facts[:30]), ("valid", facts[30:35]), ("test", facts[35:])):
        (folder / f"{split}.txt").write_text("".join(part))
    model = [
        "--model",
        "n-cp",
        "--set",
        "model.entity_dim=4",
        "--set",
        "training.epochs=1",
        "--quiet",
    ]
    assert main(["train", str(folder), "--out", str(folder / "run"), *model]) == 0
    return folder / "run"


def cells(out: str, first: str) -> list[str]:
    """The cells of the row that begins with a word."""
    (line,) = [line for line in out.splitlines() if line.strip().startswith(first)]
    return line.replace(first, "", 1).split()


def test_evaluate_shows_the_metrics_of_the_model_and_of_the_baselines(
    getd: Getd, run: Path
) -> None:
    evaluation = open_run(run).evaluate("test")
    out = getd("evaluate", run).out
    assert f"{evaluation.mrr:.4f}" in cells(out, "this model")
    for name, baseline in evaluation.baselines.items():
        assert f"{baseline.mrr:.4f}" in cells(out, f"baseline: {name}")


def test_calibrate_shows_what_was_fitted(getd: Getd, run: Path) -> None:
    out = getd("calibrate", run).out
    fitted = open_run(run).calibration
    assert cells(out, "3") == [cell(fitted.temperature["3"]), "logistic"]
    valid = open_run(run).folder.read_json("calibration.json")["valid"]
    for name in ("before", "after"):
        assert cells(out, name) == [cell(valid[name]["error"])]


def test_remember_shows_validation_with_and_without_memory(getd: Getd, run: Path) -> None:
    before = open_run(run, memory=False).evaluate("valid").mrr
    out = getd("remember", run).out
    assert cells(out, "without memory") == [cell(before)]
    assert cells(out, "with memory") == [cell(open_run(run).evaluate("valid").mrr)]


def test_tune_shows_a_line_for_each_trial_unless_it_is_quiet(
    getd: Getd, run: Path, tmp_path: Path
) -> None:
    space = tmp_path / "space.toml"
    space.write_text("[training.batch_size]\nchoices = [16, 32]\n")
    command = ["tune", run.parent, "--model", "n-cp", "--space", space, "--study"]
    command += [tmp_path / "study.db", "--set", "training.epochs=1", "--out", tmp_path / "tuned"]
    shown = getd(*command, "--trials", 1)
    assert shown.code == 0, shown.err
    assert shown.err.count("trial 0  complete  valid MRR") == 1
    assert re.search(r"; best 0\.\d+ \(trial 0\), 1 of 1$", shown.err, re.MULTILINE)
    assert "The best settings, by validation MRR" in shown.out
    assert "trial 1  " not in getd(*command, "--trials", 2, "--quiet").err


def test_a_training_without_matplotlib_says_what_learning_curves_need(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notice = "learning curves need matplotlib: pip install 'getd[plots]'"
    show_training(open_run(run), json=True)
    assert notice not in capsys.readouterr().err
    monkeypatch.setattr(reports, "find_spec", lambda name: None)
    show_training(open_run(run), json=True)
    assert notice in capsys.readouterr().err.replace("\n", " ")


def test_datasets_shows_every_data_set_under_its_columns(getd: Getd) -> None:
    out = getd("datasets").out
    head = "name what licence source place arity train valid test entities relations"
    assert out.splitlines()[0] == "Data sets"
    assert "".join(head.split()[:3]) in "".join(out.splitlines()[1:4]).replace(" ", "")
    assert [name for name in DATASETS if name[:6] not in out] == []


def test_datasets_as_json_have_the_digests_of_published_files_and_null_for_generated_ones(
    getd: Getd,
) -> None:
    records = json.loads(getd("datasets", "--json").out)["datasets"]
    digests = {record["name"]: record["sha256"] for record in records}
    assert {name: digests[name] for name in GENERATED} == dict.fromkeys(GENERATED)
    assert {name: digests[name] for name in DATASETS} == {
        name: dataset.sha256 for name, dataset in DATASETS.items()
    }


def test_reasons_are_shown_a_line_each_however_long_and_a_blank_line_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = "a name that is longer than any line " * 6 + "is wide"
    why = Explanation((Reason(("r", long, "b"), 0.5), Reason(("s", "c"), 0.25)), (long, "d"))
    _show_reasons(Answer((long,), 1.0, 0.5, None, False), [why])
    assert capsys.readouterr().out == (
        f"{long}, because\n   50.0%  r({long}, b)\n   25.0%  s(c)\n  most similar: {long}, d\n\n"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (True, "true"),
        (12345, "12,345"),
        (0.0, "0.0000"),
        (0.25, "0.2500"),
        (0.00005, "0.0001"),
        (4e-5, "4.0e-05"),
        (-4e-5, "-4.0e-05"),
        ("a", "a"),
    ],
)
def test_a_cell_shows_its_value(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_plain_text_is_read_literally_unless_it_is_called_escaped(
    getd: Getd, tmp_path: Path
) -> None:
    (tmp_path / "facts.txt").write_text("r\ta\\\\b\tc\n")
    for number, (flags, name) in enumerate([([], r"a\\b"), (["--escaped"], r"a\b")]):
        out = tmp_path / f"{number}.jsonl"
        assert getd("convert", tmp_path / "facts.txt", out, *flags).code == 0
        assert json.loads(out.read_text())["entities"] == [name, "c"]


def test_answers_have_a_column_for_each_number_that_any_of_them_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fact = Facts(np.array([0]), np.array([[0, 0]]))
    question = Question(fact, (1,), ("r", "a", "?"))
    answers = [Answer(("b",), 1.5, 0.75, None, True), Answer(("c",), 0.5, None, None, False)]
    show_answers(question, answers, right="c")
    title, head, first, second = capsys.readouterr().out.splitlines()[:4]
    assert title == "r(a, ?)"
    assert head.split() == ["answer", "probability", "score"]  # no confidence
    assert first.split() == ["b", "0.7500", "1.5000", "known"]
    assert second.split() == ["c", "–", "0.5000", "right"]

    joint = Question(fact, (0, 1), ("r", "?", "?"))
    show_answers(joint, [Answer(("b", "c"), -1.0, None, 0.25, False)])
    head, row = capsys.readouterr().out.splitlines()[1:3]
    assert head.split() == ["answer", "confidence", "plausibility"]
    assert row.split() == ["b,", "c", "0.2500", "-1.0000"]

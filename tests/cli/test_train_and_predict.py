"""``getd train``, ``evaluate``, ``predict``, ``models`` and ``demo`` as a user sees them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from getd.cli.app import main
from getd.config import read_toml
from getd.models import MODELS, ScoringModel, registry
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from tests.conftest import Result

Getd = Callable[..., Result]
QUICK = (
    "--set",
    "training.epochs=2",
    "--set",
    "training.threads=1",
    "--set",
    "model.entity_dim=8",
    "--set",
    "model.ring_ranks=4",
)
METRICS = {"mrr", "hits_at_1", "hits_at_3", "hits_at_10"}
ROWS = sorted((Path(__file__).parents[2] / "src/getd/experiments/rows").glob("[bp]*/*.toml"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main(["train", "demo", "--out", str(out), "--quiet", *QUICK]) == 0
    return out


@pytest.mark.usefixtures("rendered_pictures")
def test_train_shows_epochs_and_a_report(getd: Getd, tmp_path: Path) -> None:
    result = getd("train", "demo", "--out", tmp_path / "run", *QUICK)
    assert result.code == 0
    choice, *epochs = result.err.splitlines()
    assert choice.startswith("chosen for 1,844 facts of arity 2, 3, 4, 201 entities: model getd")
    notice = epochs.pop()
    assert notice.startswith("note: validation MRR 0.")
    assert [line.split()[:2] for line in epochs] == [["epoch", "1"], ["epoch", "2"]]
    assert "valid MRR" in result.err
    assert "this model" in result.out
    assert "baseline: lookup" in result.out
    assert (tmp_path / "run" / "curves.svg").read_text().startswith("<?xml")


def test_train_json_is_one_object(getd: Getd, tmp_path: Path) -> None:
    result = getd(
        "train",
        "demo",
        "--out",
        tmp_path / "run",
        "--quiet",
        "--json",
        "--seed",
        3,
        "--model",
        "n-cp",
        *QUICK[:4],
    )
    record = json.loads(result.out)
    assert (record["epochs"], result.err) == (2, f"note: {record['notices'][0]}\n")
    assert set(record["report"]["baselines"]) == {"frequency", "lookup"}
    assert read_toml(tmp_path / "run" / "config.toml")["training"]["seed"] == 3


def test_a_training_parses_its_config_once_and_builds_its_model_once(
    getd: Getd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs: list[Config] = []
    models: list[str] = []

    def count_config(self: Config, *values: Any, **named: Any) -> None:
        configs.append(self)
        build_config(self, *values, **named)

    def count_model(name: str, *values: Any) -> ScoringModel:
        models.append(name)
        return build_model(name, *values)

    build_config = Config.__init__
    build_model = registry.make_model
    monkeypatch.setattr(Config, "__init__", count_config)
    for module in list(sys.modules.values()):
        if getattr(module, "make_model", None) is build_model:
            monkeypatch.setattr(module, "make_model", count_model)

    paper = ("--preset", "paper", *QUICK)
    assert getd("train", "demo", "--out", tmp_path / "run", "--quiet", *paper).code == 0
    assert (len(configs), models) == (1, ["getd"])

    # By default it is parsed again, once, with what was chosen for the data.
    configs.clear()
    models.clear()
    assert getd("train", "demo", "--out", tmp_path / "chosen", "--quiet", *QUICK).code == 0
    assert (len(configs), models) == (2, ["getd"])


def test_a_config_names_data_and_published_values(getd: Getd, tmp_path: Path) -> None:
    path = tmp_path / "row.toml"
    path.write_text(
        'data = "demo"\n[model]\nname = "n-cp"\n[training]\nepochs = 1\n[published]\nmrr = 0.5\n'
    )
    result = getd("train", "--config", path, "--out", tmp_path / "run", "--quiet")
    assert result.code == 0
    assert "published" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train"], 2, "no data: name it after train, or as data = … in the config"),
        (
            ["train", "demo", "--model", "gted"],
            2,
            f"no model 'gted'; did you mean 'getd'? (there are {', '.join(MODELS)})",
        ),
        (
            ["train", "demo", "--set", "training.epoch=2"],
            2,
            "no setting training.epoch; did you mean 'epochs'?",
        ),
        (["train", "demo", "--set", "epochs=2"], 2, "expected section.key=value, found 'epochs=2'"),
        (
            ["train", "demo", "--config", "nothing.toml"],
            2,
            "cannot read nothing.toml: No such file or directory",
        ),
        (["evaluate", "nothing"], 1, "nothing is not a run: there is no config.toml in it"),
    ],
)
def test_mistakes_are_one_line(getd: Getd, arguments: list[str], code: int, message: str) -> None:
    result = getd(*arguments)
    assert (result.code, result.err, result.out) == (code, f"{message}\n", "")


def test_evaluate_json_has_what_is_promised(getd: Getd, run: Path) -> None:
    report = json.loads(getd("evaluate", run, "--json").out)
    assert {"protocol", "metrics", "baselines", "by"} <= set(report)
    assert {"mrr", "hits_at_1", "hits_at_3", "hits_at_10"} <= set(report["metrics"])
    assert report["protocol"]["split"] == "test"


@pytest.mark.parametrize("by", ["arity", "position", "relation", "seen"])
def test_evaluate_shows_groups(getd: Getd, run: Path, by: str) -> None:
    result = getd(
        "evaluate", run, "--split", "valid", "--by", by, "--ties", "pessimistic", "--sample", 20
    )
    assert (result.code, f"By {by}" in result.out) == (0, True)


def test_scores_can_be_rounded(getd: Getd, run: Path, tmp_path: Path) -> None:
    rounded = json.loads(getd("evaluate", run, "--precision", "bf16", "--json").out)
    assert rounded["protocol"]["precision"] == "bf16"
    small = json.loads(getd("evaluate", run, "--precision", "auto", "--json").out)
    assert "precision" not in small["protocol"]
    assert "scores in bf16" in getd("evaluate", run, "--precision", "bf16").out

    completion = ("--relation", "plays for", "--min-confidence", 0, "--top", 5)
    out = tmp_path / "facts.tsv"
    assert getd("complete", run, *completion, "--out", out, "--precision", "bf16").code == 0
    assert len(out.read_text().splitlines()) == 5


def test_predict_answers_by_position_by_role_and_for_relations(getd: Getd, run: Path) -> None:
    answered = json.loads(
        getd("predict", run, "born in", "Ada Hale", "?", "--top", 3, "--json").out
    )
    assert answered["question"] == ["born in", "Ada Hale", "?"]
    assert [set(answer) for answer in answered["answers"]] == [
        {"entity", "score", "probability", "confidence", "known"}
    ] * 3
    by_role = json.loads(
        getd("predict", run, "born in", "city=?", "player=Ada Hale", "--top", 3, "--json").out
    )
    assert by_role == answered
    relations = json.loads(getd("predict", run, "?", "Ada Hale", "Oxbow", "--json").out)
    assert {answer["relation"] for answer in relations["answers"]} <= {
        "born in",
        "based in",
        "member of",
    }
    assert "born in(Ada Hale, ?)" in getd("predict", run, "born in", "Ada Hale", "?").out


@pytest.fixture(scope="module")
def no_validation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without validation facts, on data with names that training does not have."""
    folder = tmp_path_factory.mktemp("no-validation")
    train = [f"likes\tp{i}\tc{i % 5}\n" for i in range(20)]
    test = [f"likes\tnew {i}\tc{i}\n" for i in range(5)] + ["hates\tp1\tc1\n"]
    (folder / "train.tsv").write_text("".join(train))
    (folder / "test.tsv").write_text("".join(test))
    arguments = ["--model", "n-cp", "--set", "training.epochs=1", "--quiet"]
    assert main(["train", str(folder), "--out", str(folder / "run"), *arguments]) == 0
    return folder / "run"


def test_a_run_that_cannot_be_calibrated_gets_no_hint_to_do_so(
    getd: Getd, no_validation: Path
) -> None:
    assert getd("predict", no_validation, "likes", "p1", "?").err == ""


def test_names_without_a_training_fact_are_named_before_answers(
    getd: Getd, no_validation: Path, tmp_path: Path
) -> None:
    result = getd("predict", no_validation, "likes", "new 1", "?")
    guess = "'new 1' has no training fact, so answers about it are guesses"
    assert result.err == f"note: {guess}\n"
    assert "'hates' has no" in getd("predict", no_validation, "hates", "p1", "?").err

    lines = [f"likes\tnew {i}\t?\n" for i in range(5)] + ["?\tp1\tc1\n", "likes\t?\tc1\n"]
    (tmp_path / "questions.tsv").write_text("".join(lines))
    several = getd("predict", no_validation, "--questions", tmp_path / "questions.tsv").err
    assert "'new 0', 'new 1', 'new 2' and 2 more have no training fact, so answers" in several


def test_predict_answers_a_file(getd: Getd, run: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.txt").write_text("born in\tAda Hale\t?\nborn in\t?\tOxbow\n")
    answered = json.loads(getd("predict", run, "--questions", tmp_path / "asked.txt", "--json").out)
    assert [record["question"][2] for record in answered["answers"]] == ["?", "Oxbow"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "ask one question, or name a file with --questions"),
        (["born in", "Ada Hale", "?", "--top", "0"], 2, "expected --top of 1 or more, found 0"),
        (["born in", "Ada Hal", "?"], 1, "unknown entity 'Ada Hal'; did you mean 'Ada Hale'?"),
    ],
)
def test_questions_that_are_none(
    getd: Getd, run: Path, arguments: list[str], code: int, message: str
) -> None:
    result = getd("predict", run, *arguments)
    assert (result.code, result.err) == (code, f"{message}\n")


def test_the_only_relation_of_a_run_need_not_be_named(
    getd: Getd, run: Path, tmp_path: Path
) -> None:
    table = tmp_path / "plays.csv"
    table.write_text("who,club\n" + "".join(f"p{i % 9},c{i % 5}\n" for i in range(40)))
    arguments = ["--out", tmp_path / "run", "--model", "n-cp", "--set", "training.epochs=1"]
    assert getd("train", table, *arguments, "--quiet").code == 0

    asked = getd("predict", tmp_path / "run", "club=?", "who=p1", "--json").out
    assert json.loads(asked)["question"] == ["plays", "p1", "?"]
    assert asked == getd("predict", tmp_path / "run", "plays", "p1", "?", "--json").out
    missing = ["--out", tmp_path / "missing.tsv", "--min-confidence", 0]
    assert getd("complete", tmp_path / "run", *missing).code == 0
    assert (tmp_path / "missing.tsv").read_text().startswith("plays\t")

    result = getd("complete", run, "--out", tmp_path / "missing.tsv")
    assert result.err == "expected the name of a relation, as there are 8\n"
    result = getd("predict", run, "player=?", "city=Oxbow")
    assert result.err.startswith("unknown relation 'player=?'")


def test_models_are_listed_with_their_settings(getd: Getd) -> None:
    models = {
        record["name"]: record for record in json.loads(getd("models", "--json").out)["models"]
    }
    assert list(models) == [*MODELS, "frequency", "lookup"]
    assert models["getd"]["settings"]["ring_ranks"] == 40
    assert (models["transe"]["arity"], models["rae"]["arity"]) == ("2", "any")
    assert all(models[name]["about"] and models[name]["parameters"] for name in MODELS)
    shown = getd("models").out
    assert "model.ring_ranks" in shown
    assert re.search("model.batch_norm +true", shown)
    assert "|E|d + |R|d" in shown


def test_parameters_are_counted_for_a_data_set(getd: Getd) -> None:
    models = {
        record["name"]: record
        for record in json.loads(getd("models", "Synthetic10-3", "--json").out)["models"]
    }
    assert (
        models["n-cp"]["parameters"] == 25 * (3 * 10 + 2) + 16 * 25
    )  # three tables, relations, batch norm
    assert models["transe"]["parameters"] is None
    assert "not for these facts" in getd("models", "Synthetic10-3").out


@pytest.mark.parametrize("model", MODELS)
def test_every_model_trains_evaluates_and_predicts(getd: Getd, tmp_path: Path, model: str) -> None:
    arity = ["--arity", "2"] if MODELS[model].model.binary_only else []
    few = [
        "--set",
        "training.epochs=1",
        "--set",
        "training.validation_sample=10",
        "--set",
        "training.test_sample=10",
    ]
    result = getd(
        "train",
        "demo",
        "--model",
        model,
        "--out",
        str(tmp_path / "run"),
        *arity,
        *few,
        "--json",
        "--quiet",
    )
    record = json.loads(result.out)
    assert (record["epochs"], record["report"]["protocol"]["sample"]) == (1, 10)
    notices = record["notices"]
    if arity:  # the names of most players are in no other fact of two entities
        lone = "nearly every fact has a name of its own in 'player' of born in"
        notices = [f"{lone}: little can be learnt about it", *notices]
    assert result.err == "".join(f"note: {notice}\n" for notice in notices)
    kb = RunFolder(tmp_path / "run").read_knowledge_base()
    fact = kb.split("test")[2].take(slice(0, 1))
    question = [kb.relations[int(fact.relation[0])], "?", kb.entities[int(fact.entities[0, 1])]]
    assert (
        len(json.loads(getd("predict", str(tmp_path / "run"), *question, "--json").out)["answers"])
        == 10
    )


def test_a_model_for_two_entities_names_those_for_more(getd: Getd, tmp_path: Path) -> None:
    result = getd("train", "demo", "--model", "complex", "--out", str(tmp_path / "run"))
    others = [name for name in MODELS if not MODELS[name].model.binary_only]
    message = "complex is for facts of two entities, found arity 3, 4"
    expected = f"{message}; for any arity: {', '.join(others)}\n"
    assert (result.code, result.err) == (2, expected)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("path", ROWS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_row_is_a_config_that_can_be_trained(path: Path) -> None:
    tables = read_toml(path)
    assert path.stem.startswith(f"{Config.parse(tables).model_name}-{tables['data'].lower()}")
    assert (
        f"getd train --config src/getd/experiments/rows/{path.parent.name}/{path.name}"
        in path.read_text()
    )
    assert set(tables.get("published", METRICS)) == METRICS


def test_info_shows_the_baselines_on_request(getd: Getd) -> None:
    report = json.loads(getd("info", "demo", "--baselines", "--json").out)
    assert 0 < report["baselines"]["frequency"]["mrr"] < report["baselines"]["lookup"]["mrr"] < 0.5
    assert "baseline: lookup" in getd("info", "demo", "--baselines").out
    assert json.loads(getd("info", "demo", "--floors", "--json").out) == report
    assert "baselines" not in json.loads(getd("info", "demo", "--json").out)

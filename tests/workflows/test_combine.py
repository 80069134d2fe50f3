"""A combined run is a run: it needs no other, and every command works on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import getd as package
from getd.api import open_run
from getd.errors import ConfigError, GetdError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.memory.with_memory import WithMemory
from getd.models.ensemble import DotProductEnsemble, Ensemble
from getd.run import Run
from getd.runs.folder import RunFolder
from getd.runs.records import CombinationRecord, MemberRecord
from getd.workflows import combine as workflow
from tests.combined import MEMBERS, combined_run, train_member
from tests.conftest import Result

Getd = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("combined")


@pytest.fixture(scope="module")
def combined(folder: Path) -> Run:
    return combined_run(folder / "run")


@pytest.fixture(scope="module")
def members(folder: Path, combined: Run) -> list[Path]:
    return [folder / f"run-{name}" for name in MEMBERS]


@pytest.fixture(scope="module")
def other(folder: Path) -> Path:
    """A run whose scores are no dot products."""
    return train_member("rae", folder / "other").path


@pytest.fixture
def copy(combined: Run, tmp_path: Path) -> Path:
    """The combined run alone, where no other run is."""
    return shutil.copytree(combined.path, tmp_path / "copy")


def test_its_report_is_that_of_the_folder_alone(combined: Run, copy: Path) -> None:
    again = open_run(copy)
    assert isinstance(again.model, WithMemory)
    assert isinstance(again.model.bare, DotProductEnsemble)
    report = again.folder.read_report()
    assert again.evaluate("test").as_dict()["metrics"] == report.as_dict()["metrics"]
    assert again.calibration == combined.calibration
    assert report.valid_mrr == open_run(copy, memory=False).evaluate("valid").mrr


def test_scores_are_those_of_the_weights_that_are_kept(combined: Run, members: list[Path]) -> None:
    kept = combined.folder.read_combination()
    runs = [open_run(path) for path in members]
    mrrs = [run.evaluate("valid", baselines=False).mrr for run in runs]
    assert [member.valid_mrr for member in kept.members] == mrrs
    assert [member.run for member in kept.members] == list(map(str, members))

    for facts in combined.kb.split("test").values():
        relation, entities = facts.to_tensors()
        for position in range(facts.arity):
            expected = torch.zeros(())
            slot = kept.weights[f"{facts.arity}-{position}"]
            for run, weight in zip(runs, slot, strict=True):
                with run.model.scoring():
                    scores = run.model.score_candidates(relation, entities, position)
                expected = expected + weight * scores
            with combined.model.scoring():
                bare = combined.model.bare
                actual = bare.score_candidates(relation, entities, position)
            torch.testing.assert_close(actual, expected)


def test_the_protocol_says_what_was_fitted(combined: Run) -> None:
    assert (
        combined.evaluate("test")
        .protocol.sentence()
        .startswith(
            "trained on train; known answers of train, valid and test left out; 2 models as one, "
            "their 12 weights fitted on the labels of valid (known answers of train and valid left "
            "out); epoch chosen on valid (known answers of train and valid left out); a memory "
        )
    )


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("evaluate", "{run}", "--by", "position"),
    ("evaluate", "{run}", "--no-memory", "--json"),
    ("predict", "{run}", "plays for", "player 1", "?", "--why"),
    ("predict", "{run}", "award", "?", "?", "year 1", "--top", "3"),
    ("predict", "{run}", "?", "player 1", "club 2"),
    ("rate", "{run}", "{facts}"),
    ("rate", "{run}", "--suspicious", "2"),
    ("complete", "{run}", "--relation", "plays for", "--out", "{out}.tsv"),
    ("calibrate", "{run}"),
    ("remember", "{run}", "--json"),
    ("export", "{run}", "--out", "{out}"),
    ("extend", "{run}", "{facts}", "--out", "{out}"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:3:2]))
def test_every_command_works_on_it(
    getd: Getd, copy: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "facts.tsv").write_text("plays for\tplayer 1\tclub 3\nplays for\tnew\tclub 1\n")
    if command[0] == "rate":
        (tmp_path / "facts.tsv").write_text("plays for\tplayer 1\tclub 3\n")
    paths = {"run": copy, "facts": tmp_path / "facts.tsv", "out": tmp_path / "out"}
    result = getd(*(part.format(**paths) for part in command))
    assert result.code == 0, result.err
    assert result.out


def test_its_vectors_are_those_of_its_members(combined: Run, tmp_path: Path) -> None:
    written = combined.export(tmp_path / "tables", "npz")
    assert [path.name for path in written] == [
        "members-0-entity.npz",
        "members-0-relation.npz",
        *(f"members-1-entity-{position}.npz" for position in range(3)),
        "members-1-relation.npz",
    ]


@pytest.mark.slow
def test_its_graphs_score_as_it_does(combined: Run, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="getd[onnx] is not installed")
    pytest.importorskip("onnxscript", reason="getd[onnx] is not installed")
    combined.export(tmp_path / "graphs", "onnx")
    facts = combined.kb.split("test")[2]
    session = onnxruntime.InferenceSession(tmp_path / "graphs" / "arity-2-position-1.onnx")
    inputs = {"relation": facts.relation, "entities": facts.entities}
    with combined.model.scoring():
        expected = combined.model.bare.score_candidates(*facts.to_tensors(), 1)
    torch.testing.assert_close(torch.tensor(session.run(["scores"], inputs)[0]), expected)


def test_an_extended_one_is_still_combined(
    combined: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getd.training.new_entities.MIN_STEPS", 3)
    facts = [("plays for", "new", "club 1"), ("award", "new", "club 1", "year 2")]
    larger = combined.extend(facts, tmp_path / "larger")
    assert isinstance(larger.model.bare, DotProductEnsemble)
    assert larger.kb.n_entities == combined.kb.n_entities + 1
    assert larger.folder.read_combination() == combined.folder.read_combination()
    assert larger.evaluate("test").protocol.members == 2


def test_it_serves_what_it_predicts(combined: Run) -> None:
    pytest.importorskip("fastapi", reason="getd[serve] is not installed")
    from fastapi.testclient import TestClient

    from getd.serving.app import create_app
    from getd.serving.middleware import ServeSettings

    question = {"relation": "plays for", "entities": ["player 1", "?"]}
    with TestClient(create_app(combined.opened, ServeSettings())) as client:
        reply = client.post("/predict", json={"questions": [question], "top": 3}).json()
        assert client.get("/health").json()["model"] == "combined"
        assert len(client.get("/map").json()) == combined.kb.n_entities
    names = [answer["entity"] for answer in reply["answered"][0]["answers"]]
    answers = combined.predict("plays for", ["player 1", "?"], top=3)
    assert names == [answer.name for answer in answers]


def test_members_of_a_combined_run_are_combined_one_by_one(
    combined: Run, other: Path, tmp_path: Path
) -> None:
    larger = package.combine([combined, other], tmp_path / "larger", memory=False)
    assert type(larger.model) is Ensemble  # a distance is no dot product
    assert not larger.folder.has_memory()
    assert [member.model for member in larger.folder.read_combination().members] == [
        "getd",
        "n-cp",
        "rae",
    ]
    report = larger.folder.read_report()
    assert open_run(larger.path).evaluate("test").mrr == report.mrr
    assert larger.predict("award", ["player 1", "?", "year 1"], top=2)


def test_members_that_did_not_learn_relations_have_no_say_in_them_after_two_combinations(
    members: list[Path], tmp_path: Path
) -> None:
    learner = train_member("n-cp", tmp_path / "learner", relation_loss=1.0)
    first = package.combine([members[0], learner], tmp_path / "first", memory=False)
    second = package.combine([first, members[1]], tmp_path / "second", memory=False)
    for run, expected in ((first, [False, True]), (second, [False, True, False])):
        weights = run.folder.read_combination().weights
        assert [weight > 0 for weight in weights["relation"]] == expected
        assert all(weights["2-0"])  # each would have a say if it had learnt them


def test_the_memory_of_a_member_is_left_out(members: list[Path], tmp_path: Path) -> None:
    first = shutil.copytree(members[0], tmp_path / "first")
    plain = package.combine([first, members[1]], tmp_path / "plain", memory=False)
    open_run(first).remember()
    again = package.combine([first, members[1]], tmp_path / "again", memory=False)
    weights = plain.folder.read_combination().weights
    assert again.folder.read_combination().weights == weights


def with_facts(members: list[Path], kb: KnowledgeBase, folder: Path) -> list[Path]:
    """Copy runs, as if they had been trained on other facts."""
    copies = []
    for path in members:
        copies.append(shutil.copytree(path, folder / path.name))
        RunFolder(copies[-1]).write_knowledge_base(kb)
    return copies


def test_what_is_in_test_changes_no_weight(
    combined: Run, members: list[Path], tmp_path: Path
) -> None:
    """Poisoned: other test facts of the same names."""
    kb = combined.kb
    poison = {arity: facts.take(slice(0, 3)) for arity, facts in kb.split("valid").items()}
    other = kb.with_splits(train=kb.split("train"), valid=kb.split("valid"), test=poison)
    poisoned = package.combine(with_facts(members, other, tmp_path), tmp_path / "poisoned")
    for name in ("weights.safetensors", "memory.json", "calibration.json"):
        assert (combined.path / name).read_bytes() == (poisoned.path / name).read_bytes()


def test_without_test_there_is_no_report(
    getd: Getd, combined: Run, members: list[Path], tmp_path: Path
) -> None:
    kb = combined.kb
    alone = kb.with_splits(train=kb.split("train"), valid=kb.split("valid"))
    runs = with_facts(members, alone, tmp_path)
    result = getd("combine", *runs, "--out", tmp_path / "out", "--json", "--no-memory")
    assert json.loads(result.out)["report"] is None
    assert not (tmp_path / "out" / "report.json").exists()


def test_the_command_shows_members_and_the_report(
    getd: Getd, members: list[Path], other: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = getd("combine", *members, other, "--out", out)
    assert result.code == 0
    lines = [line.split()[0] for line in result.out.splitlines() if line.strip()]
    assert lines[:2] == ["Validation", "run"]
    assert lines[2:7] == [*map(str, members), str(other), "combined", "combined,"]
    assert "test: 30 questions" in result.out
    assert result.out.splitlines()[-1] == f"run: {out}"

    again = getd("combine", *members, "--out", out, "--overwrite", "--json", "--no-memory")
    record = json.loads(again.out)
    assert list(record) == [
        *("run", "members", "weights", "valid_mrr", "sample", "filter", "report", "notices"),
    ]
    assert list(record["weights"]) == ["2-0", "2-1", "3-0", "3-1", "3-2", "relation"]
    assert record["report"]["protocol"]["member_weights"]["weights"] == 12


def test_a_combination_that_is_not_better_is_a_notice() -> None:
    runs = []
    for name, mrr in (("runs/a", 0.5), ("runs/b", 0.41)):
        runs.append(MemberRecord(run=name, model="getd", fingerprint="", valid_mrr=mrr))
    record = CombinationRecord(members=runs, weights={}, valid_mrr=0.5, filter=[])
    assert list(workflow._notices(record)) == [
        "the combination is not better than runs/a on validation: MRR 0.5000 and 0.5000, both "
        "without memory"
    ]
    assert list(workflow._notices(record.model_copy(update={"valid_mrr": 0.51}))) == []


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "expected two or more runs to combine, found 0"),
        (["run"], "expected two or more runs to combine, found 1"),
        (["run", "../{name}/run"], "run is named twice; name each run once"),
    ],
)
def test_too_few_runs_are_a_wrong_command_line(
    getd: Getd,
    folder: Path,
    combined: Run,
    monkeypatch: pytest.MonkeyPatch,
    runs: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    paths = [run.format(name=folder.name) for run in runs]
    result = getd("combine", *paths, "--out", "new")
    assert (result.code, result.err) == (2, f"{message}\n")
    with pytest.raises(ConfigError):
        package.combine(paths, "new")


def test_runs_that_do_not_go_together_are_named(
    folder: Path, combined: Run, members: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = members[0]
    kb = combined.kb
    facts = {split: [("r", "a", "b"), ("r", "b", "c")] for split in ("train", "valid")}
    strange = train_member("n-cp", tmp_path / "strange", KnowledgeBase.from_facts(facts)).path
    more = {**dict(kb.splits), "valid": kb.split("test")}
    (changed,) = with_facts(members[1:], kb.with_splits(**more), tmp_path)
    for other, difference in ((strange, "entities (30 and 3)"), (changed, "valid facts")):
        with pytest.raises(RunError) as caught:
            package.combine([first, other], out)
        assert str(caught.value) == (
            f"{first} and {other} cannot be combined: their {difference} differ"
        )

    with pytest.raises(RunError, match=r" contain the same model$"):
        package.combine([combined, first], out)
    with pytest.raises(RunError, match=r" contain the same model$"):
        package.combine([first, shutil.copytree(first, tmp_path / "same")], out)
    (tmp_path / "same" / "weights.safetensors").unlink()
    with pytest.raises(RunError, match=r"has no weights yet; finish it with --resume$"):
        package.combine([first, tmp_path / "same"], out)
    assert not out.exists()


def test_without_validation_there_is_nothing_to_fit_on(
    combined: Run, members: list[Path], tmp_path: Path
) -> None:
    alone = combined.kb.with_splits(train=combined.kb.split("train"))
    runs = with_facts(members, alone, tmp_path)
    with pytest.raises(RunError) as caught:
        package.combine(runs, tmp_path / "out")
    assert str(caught.value) == (
        f"{runs[0]} has no validation facts, and the weights of a combination are fitted on them"
    )


def test_what_is_there_is_not_replaced_unless_that_is_asked_for(
    combined: Run, members: list[Path], tmp_path: Path
) -> None:
    def refused(out: Path, **options: bool) -> str:
        with pytest.raises(RunError) as caught:
            package.combine(members, out, **options)
        return str(caught.value)

    path = combined.path
    assert refused(path) == f"{path} holds a run already; pass --overwrite to replace it"
    one_of = f"{members[1]} is one of the runs to combine; choose another folder"
    assert refused(members[1], overwrite=True) == one_of
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    no_run = f"{tmp_path / 'mine'} is there and is no run; choose another folder"
    assert refused(tmp_path / "mine", overwrite=True) == no_run
    (tmp_path / "empty").mkdir()
    assert package.combine(members, tmp_path / "empty", memory=False).folder.is_finished()


def test_a_combination_that_was_interrupted_leaves_nothing(
    combined: Run, members: list[Path], tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if done == total:
            raise KeyboardInterrupt

    before = (combined.path / "weights.safetensors").stat()
    for out, overwrite in ((tmp_path / "new", False), (combined.path, True)):
        with pytest.raises(KeyboardInterrupt):
            package.combine(members, out, memory=False, overwrite=overwrite, progress=stop)
    assert list(tmp_path.iterdir()) == []
    assert (combined.path / "weights.safetensors").stat() == before
    assert seen[:10] == [(step, 10) for step in range(1, 11)]


def test_its_config_names_the_settings_of_its_members(combined: Run, members: list[Path]) -> None:
    stored = combined.folder.read_config()["model"]
    assert stored["name"] == "combined"
    assert stored["members"] == [
        dict(open_run(path).folder.read_config()["model"]) for path in members
    ]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("train", "--resume", "--out", "{run}"), 1),
        (("train", "--config", "{run}/config.toml", "--out", "{out}"), 2),
        (("train", "demo", "--model", "combined", "--out", "{out}"), 2),
        (("tune", "demo", "--model", "combined", "--study", "{out}.db"), 2),
    ],
)
def test_it_cannot_be_trained(
    getd: Getd, copy: Path, tmp_path: Path, command: tuple[str, ...], code: int
) -> None:
    (tmp_path / "tiny").mkdir()
    if "--config" in command:  # the data that the members were trained on, by name
        config = copy / "config.toml"
        config.write_text('data = "demo"\n' + config.read_text())
    paths = {"run": copy, "out": tmp_path / "out"}
    result = getd(*(part.format(**paths) for part in command))
    refused = "a combined model is not trained; getd combine makes it from runs\n"
    assert result.code == code
    assert result.err.endswith(refused)
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def lose_a_member(run: Path) -> None:
    path = run / "config.toml"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "n-cp" not in line))


def swap_members(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"getd"', '"n-tucker"'))


def nest(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('name = "getd"', 'name = "combined"'))


def grow(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("entity_dim = 4", "entity_dim = 4000000"))


def fewer_weights(run: Path) -> None:
    path = run / "weights.safetensors"
    tensors = load_file(path)
    tensors["weights"] = tensors["weights"][:, :1].clone()
    save_file(tensors, path)


def endless(run: Path) -> None:
    path = run / "weights.safetensors"
    tensors = load_file(path)
    tensors["weights"] *= float("inf")
    save_file(tensors, path)


def unknown_filter(run: Path) -> None:
    record = json.loads((run / "combined.json").read_text())
    (run / "combined.json").write_text(json.dumps({**record, "filter": ["tes"]}))


def no_members(run: Path) -> None:
    (run / "combined.json").write_text("{}")


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lose_a_member, r"make no model \(expected model.members to list two or more, found 1\)"),
        (swap_members, r"make no model \(no setting model"),
        (nest, r"make no model \(a combined model is not trained"),
        (grow, r"make no model \(a tensor of shape \[30, 4000000\], larger than any"),
        (fewer_weights, r"expected weights of shape \[6, 2\], found \[6, 1\]"),
        (endless, r"expected finite weights, found NaN or infinity"),
        (unknown_filter, r"combined.json: expected filter to name splits, found another thing"),
        (no_members, r"combined.json: expected members, found none"),
    ],
)
def test_one_that_was_tampered_with_is_refused(
    copy: Path, tamper: Callable[[Path], None], message: str
) -> None:
    tamper(copy)
    with pytest.raises(GetdError, match=message):
        open_run(copy).evaluate("valid")

"""A search spends its time, chooses on validation alone, and leaves one run and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import getd as package
from getd.api import open_run
from getd.errors import ConfigError, FactError, GetdError, RunError
from getd.facts.knowledge_base import KnowledgeBase
from getd.runs.config import Config
from getd.runs.folder import RunFolder
from getd.runs.opened import OpenedRun
from getd.training.callbacks import Interrupted
from getd.workflows import budget as workflow
from getd.workflows import competition
from getd.workflows.competition import SearchCallbacks, Standings
from getd.workflows.search_state import WorkFolder
from tests.conftest import Result
from tests.tiny import tiny_knowledge_base
from tests.workflows.world import BATCHES, SMALL, World, by_name, record_of, search

Getd = Callable[..., Result]
CANDIDATES = ["default", "averaged", "smooth", "faster", "slower"]
AMPLE = 10.0  # minutes: time for every candidate


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return tiny_knowledge_base()


@pytest.fixture(scope="module")
def ample(kb: KnowledgeBase, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    """A search with time for everything."""
    out = tmp_path_factory.mktemp("ample") / "run"
    world = World()
    search(kb, out, AMPLE, world)
    return out, world


def test_the_default_is_among_those_that_finish_and_nothing_below_it_wins(
    ample: tuple[Path, World],
) -> None:
    record = record_of(ample[0])
    tried = by_name(record)
    assert list(tried)[: len(CANDIDATES)] == CANDIDATES
    assert tried["default"]["standing"] == "finished"
    assert tried["default"]["epochs"] == tried["default"]["planned_epochs"] == 8
    assert record["valid_mrr"] >= tried["default"]["valid_mrr"] - 1e-12
    assert set(record["winner"]) <= set(tried)
    for name in record["winner"]:
        assert tried[name]["standing"] == "finished"


def test_the_default_alone_is_the_plain_training(kb: KnowledgeBase, tmp_path: Path) -> None:
    """Bit for bit, memory and report included, where nothing else can win."""
    config = {**SMALL, "memory": {"use": True}}
    world = World()
    enough = BATCHES * 8 / 60 / competition.TRAINING_SHARE * 1.1
    search(kb, tmp_path / "run", enough, world, config=config)
    assert record_of(tmp_path / "run")["winner"] == ["default"]

    plain = package.train(kb, out=tmp_path / "plain", config=config)
    for name in ("weights.safetensors", "memory.json", "calibration.json", "config.toml"):
        expected = (plain.path / name).read_bytes()
        assert (tmp_path / "run" / name).read_bytes() == expected
    reports = [RunFolder(tmp_path / name).read_report() for name in ("run", "plain")]
    assert reports[0] == reports[1]


def test_nothing_is_left_behind(ample: tuple[Path, World]) -> None:
    out, _ = ample
    assert [path.name for path in out.parent.iterdir()] == ["run"]
    run = open_run(out)
    assert not run.notices
    assert run.evaluate("test").mrr == run.folder.read_report().metrics.mrr
    assert run.predict("plays for", ["player 1", "?"], top=2)


def test_the_worse_half_stops_at_each_rung(ample: tuple[Path, World]) -> None:
    out, world = ample
    tried = by_name(record_of(out))
    quarter = [tried[name] for name in CANDIDATES[1:]]
    stopped = [each["name"] for each in quarter if each["epochs"] == 2]
    halfway = [each["name"] for each in quarter if each["epochs"] == 4]
    finished = [each["name"] for each in quarter if each["standing"] == "finished"]
    assert (len(stopped), len(halfway), len(finished)) == (2, 1, 1)
    for name in stopped:
        assert tried[name]["reason"] == "in the worse half after 25% of its epochs"
        assert tried[name]["standing"] == "stopped"

    at_two = {}
    for standings in world.standings:
        if standings.epochs_done == 2:
            at_two[standings.candidate.name] = standings.valid_mrr
    worst = min(at_two[name] for name in [*halfway, *finished])
    assert max(at_two[name] for name in stopped) <= worst


def test_when_all_had_their_turn_the_best_gets_other_seeds(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "candidates", lambda config, kb: {"default": config})
    training = {key: value for key, value in SMALL["training"].items() if key != "seed"}
    search(kb, tmp_path / "run", AMPLE, World(), config={**SMALL, "training": training})
    tried = by_name(record_of(tmp_path / "run"))
    assert list(tried) == ["default", *(f"default-seed-{seed}" for seed in (1, 2, 3))]
    assert tried["default-seed-2"]["settings"] == {"training.seed": 2}


def test_what_is_in_test_changes_nothing(
    kb: KnowledgeBase, ample: tuple[Path, World], tmp_path: Path
) -> None:
    """Poisoned: other test facts of the same names, which the better candidate would know."""
    poison = {arity: facts.take(slice(0, 9)) for arity, facts in kb.split("train").items()}
    other = kb.with_splits(train=kb.split("train"), valid=kb.split("valid"), test=poison)
    search(other, tmp_path / "run", AMPLE, World())
    assert record_of(tmp_path / "run") == record_of(ample[0])
    weights = [path / "weights.safetensors" for path in (tmp_path / "run", ample[0])]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_test_is_not_read_unless_that_is_wanted(kb: KnowledgeBase, tmp_path: Path) -> None:
    for number, minutes in enumerate((0.5, AMPLE)):
        out = tmp_path / f"run-{number}"
        search(kb, out, minutes, World(), ask_test=False)
        assert not (out / "report.json").exists()


@pytest.mark.parametrize("minutes", [0.01, 0.3, 0.7, 1.5])
def test_the_time_is_kept(kb: KnowledgeBase, tmp_path: Path, minutes: float) -> None:
    """Beyond it is an epoch that is under way, at most."""
    world = World()
    search(kb, tmp_path / "run", minutes, world)
    assert world.now <= 60 * minutes + BATCHES

    tried = by_name(record_of(tmp_path / "run"))
    assert tried["default"]["standing"] == "finished"
    fitting = 60 * minutes * competition.TRAINING_SHARE / BATCHES
    assert tried["default"]["epochs"] >= min(max(1, int(fitting) - 1), 8)


def test_the_schedule_ends_where_the_time_does(kb: KnowledgeBase, tmp_path: Path) -> None:
    training = {**SMALL["training"], "schedule": "linear", "epochs": 50}
    search(kb, tmp_path / "run", 1.0, World(), config={**SMALL, "training": training})
    folder = RunFolder(tmp_path / "run")
    last = json.loads(folder.history.read_text().splitlines()[-1])
    planned = folder.read_config()["training"]["epochs"]
    assert 10 <= last["epoch"] == planned < 15
    assert last["learning_rate"] <= 1e-3 / planned


def test_a_machine_that_slows_down_ends_the_default_early(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    world = World()
    standings = world.standings.append

    def slower(each: Standings) -> None:
        standings(each)
        world.seconds = 8.0

    callbacks = SearchCallbacks(world.on_training, slower)
    config = Config.parse(SMALL)
    workflow.search(kb, config, tmp_path / "run", 1.0, callbacks=callbacks, clock=world)
    default = by_name(record_of(tmp_path / "run"))["default"]
    assert default["standing"] == "finished"
    assert 1 < default["epochs"] == default["planned_epochs"] < 8


def test_a_candidate_that_is_too_slow_is_left_out(kb: KnowledgeBase, tmp_path: Path) -> None:
    search(kb, tmp_path / "run", 5.0, World(averaged=100.0))
    tried = by_name(record_of(tmp_path / "run"))
    assert tried["averaged"]["reason"] == "its first epoch takes too long"
    assert tried["smooth"]["epochs"] >= 2


def test_a_candidate_that_alone_fits_trains_for_fewer_epochs(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    minutes = (BATCHES * 8 * 1.8 + BATCHES) / competition.TRAINING_SHARE / 60
    search(kb, tmp_path / "run", minutes, World())
    tried = by_name(record_of(tmp_path / "run"))
    shortened = [name for name, each in tried.items() if each["planned_epochs"] < 8]
    assert len(shortened) == 1
    assert 4 <= tried[shortened[0]]["epochs"] < 8


def test_a_candidate_that_fails_is_left_out_and_the_default_may_not(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = competition.start.train

    def fail(name: str) -> None:
        def replaced(kb: KnowledgeBase, config: Config, out: Path, **options: Any) -> OpenedRun:
            if out.name == name:
                raise GetdError("the loss became nan")
            return train(kb, config, out, **options)

        monkeypatch.setattr(competition.start, "train", replaced)

    fail("averaged")
    search(kb, tmp_path / "run", AMPLE, World())
    failed = by_name(record_of(tmp_path / "run"))["averaged"]
    assert (failed["standing"], failed["reason"]) == ("failed", "the loss became nan")

    fail("default")
    with pytest.raises(GetdError, match=r"^the loss became nan$"):
        search(kb, tmp_path / "other", AMPLE, World())


@pytest.mark.parametrize("interrupt_after", [1, 4, 9])
def test_a_resumed_search_ends_as_one_that_was_not_stopped(
    kb: KnowledgeBase, ample: tuple[Path, World], tmp_path: Path, interrupt_after: int
) -> None:
    """The run is the same, and no batch but those of a lost epoch is trained twice."""
    out = tmp_path / "a run"
    world = World()
    world.interrupt_after = interrupt_after
    with pytest.raises(Interrupted) as stopped:
        search(kb, out, AMPLE, world)
    again = f"getd train --resume --budget {AMPLE:g} --out '{out}'"
    assert str(stopped.value) == f"resume with: {again}"
    assert not out.exists()
    done = {name for name, each in states(out).items() if each["standing"] != "running"}

    begun = len(world.begun)
    world.interrupt_after = 0
    search(kb, out, AMPLE, world, resume=True, config={})
    assert {name for name, _ in world.begun[begun:]} & finished_before(done, world, begun) == set()
    expected = record_of(ample[0])
    assert record_of(out)["winner"] == expected["winner"]
    weights = [path / "weights.safetensors" for path in (out, ample[0])]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    surplus = world.batches - ample[1].batches
    assert sum(surplus.values()) <= BATCHES + 1
    assert list(tmp_path.iterdir()) == [out]


def states(out: Path) -> dict[str, dict[str, Any]]:
    path = WorkFolder.of(out).path / "search.json"
    return {each["name"]: each for each in json.loads(path.read_text())["candidates"]}


def finished_before(done: set[str], world: World, begun: int) -> set[str]:
    """Return the candidates that had trained to their end when a search stopped."""
    trained = {name for name, epoch in world.begun[:begun] if epoch == 8}
    return trained & done


def test_time_that_was_spent_before_an_interruption_counts(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    world = World()
    world.interrupt_after = 3
    with pytest.raises(Interrupted):
        search(kb, tmp_path / "run", 1.0, world)
    world.interrupt_after = 0
    world.now = 1e6  # of the pause
    search(kb, tmp_path / "run", 1.0, world, resume=True)
    assert world.now <= 1e6 + 60
    assert record_of(tmp_path / "run")["seconds"] <= 60 + BATCHES


def test_a_search_that_stopped_while_its_run_was_written_ends(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(winner: Path, out: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("getd.workflows.winner._publish", stop)
        with pytest.raises(Interrupted):
            search(kb, tmp_path / "run", 1.0, World())
    world = World()
    search(kb, tmp_path / "run", 1.0, world, resume=True)
    assert world.begun == []
    assert open_run(tmp_path / "run").folder.read_report()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_search_that_replaces_a_run_is_resumed_while_the_run_is_still_there(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    search(kb, out, 0.1, World())
    replaced = open_run(out).folder.path.joinpath("weights.safetensors").read_bytes()

    world = World()
    world.interrupt_after = 1
    with pytest.raises(Interrupted):
        search(kb, out, 0.2, world, overwrite=True)
    assert (out / "weights.safetensors").read_bytes() == replaced
    world.interrupt_after = 0
    search(kb, out, 0.2, world, resume=True)
    assert record_of(out)["minutes"] == pytest.approx(0.2)


def test_what_is_there_is_not_replaced_unless_that_is_asked_for(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    def refused(**options: Any) -> str:
        with pytest.raises(GetdError) as caught:
            search(kb, out, 0.1, World(), **options)
        return str(caught.value)

    out = tmp_path / "run"
    work = tmp_path / "run.candidates"
    world = World()
    world.interrupt_after = 1
    with pytest.raises(Interrupted):
        search(kb, out, 0.1, world)
    hint = "pass --resume to continue it or --overwrite to begin again"
    assert refused() == f"{work} holds a search already; {hint}"
    other = {"training": {"epochs": 3}}
    message = f"{out} was begun with other settings; leave them out, or pass --overwrite"
    assert refused(resume=True, config=other) == message
    search(kb, out, 0.1, World(), overwrite=True)

    holds = f"{out} holds a run already; pass --overwrite to replace it"
    assert refused() == refused(resume=True) == holds
    search(kb, out, 0.2, World(), overwrite=True)
    assert record_of(out)["minutes"] == pytest.approx(0.2)

    work.mkdir()
    (work / "thesis.txt").touch()
    no_search = f"{work} is there and is no search; choose another folder for the run"
    assert refused(overwrite=True) == no_search
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").touch()
    assert refused(overwrite=True) == f"{out} is there and is no run; choose another folder"


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_a_budget_is_a_number_of_minutes(kb: KnowledgeBase, tmp_path: Path, minutes: float) -> None:
    message = f"expected a budget of more than 0 minutes, found {minutes:g}"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        package.train(kb, out=tmp_path / "run", budget=minutes)
    assert list(tmp_path.iterdir()) == []


def test_a_budget_needs_validation_and_something_to_choose(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    alone = kb.with_splits(train=kb.split("train"))
    message = "tiny has no validation facts, and a budget is spent on comparing candidates on them"
    with pytest.raises(FactError, match=f"^{message}$"):
        package.train(alone, out=tmp_path / "run", budget=1)
    with pytest.raises(ConfigError, match=r"^a budget is spent on choosing settings, and the "):
        package.train(kb, out=tmp_path / "run", budget=1, preset="paper")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_state_is_named(kb: KnowledgeBase, tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "run")
    work.path.mkdir()
    for content in (b"{", b"\xff", b"{}"):
        (work.path / "search.json").write_bytes(content)
        with pytest.raises(RunError) as caught:
            search(kb, tmp_path / "run", 1.0, World(), resume=True)
        assert str(caught.value).startswith(f"{work.path / 'search.json'}: expected ")


def test_the_command_shows_what_leads_and_who_won(getd: Getd, tmp_path: Path) -> None:
    options = ["--model", "n-cp", "--set", "model.entity_dim=4", "--set", "training.epochs=2"]
    options += ["--seed", "0"]
    arguments = ["train", "demo", "--out", tmp_path / "run", *options]
    result = getd(*arguments, "--budget", "0.2")
    assert result.code == 0
    lines = result.err.splitlines()
    assert re.match(r"default  1 of 2 epochs  valid MRR 0\.\d{4}; best 0\.\d{4} \(def", lines[0])
    assert any(line.startswith("choosing among default") for line in lines)
    assert "winner: " in result.out
    assert result.out.splitlines()[0].startswith("Validation, ")
    assert result.out.splitlines()[-1].startswith(f"run: {tmp_path / 'run'}")

    again = getd(*arguments, "--budget", "0.2", "--overwrite", "--json", "--quiet")
    budget = json.loads(again.out)["budget"]
    assert list(budget) == [
        *("minutes", "seconds", "winner", "valid_mrr", "reason", "candidates", "comparisons"),
    ]
    assert "valid MRR" not in again.err


@pytest.mark.parametrize("budget", ["0", "-3", "nan"])
def test_a_wrong_budget_is_a_wrong_command_line(getd: Getd, tmp_path: Path, budget: str) -> None:
    result = getd("train", "demo", "--budget", budget, "--out", tmp_path / "run")
    assert result.code == 2
    expected = f"expected a budget of more than 0 minutes, found {float(budget):g}\n"
    assert result.err == expected


def test_a_combined_run_is_no_config_of_a_search(getd: Getd, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[model]\nname = "combined"\n')
    result = getd("train", "demo", "--budget", 1, "--config", tmp_path / "config.toml")
    message = "a combined model is not trained; getd combine makes it from runs\n"
    assert (result.code, result.err) == (2, message)

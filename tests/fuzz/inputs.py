"""Damaged input files: facts in every form, questions, facts to rate and to learn, configs, spaces,
Python's own.
"""

from __future__ import annotations

import gzip
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, get_args

import polars as pl
import zstandard

import getd
from getd.choices import ReadFormat
from getd.cli.commands.complete import complete
from getd.cli.commands.convert import convert
from getd.cli.commands.extend import extend
from getd.cli.commands.info import info
from getd.cli.commands.predict import predict
from getd.cli.commands.rate import rate
from getd.cli.options import Reading
from getd.config import override, read_toml
from getd.errors import GetdError
from getd.runs.config import Config
from getd.tuning.space import read_space
from tests.fuzz.case import Case, Outcome
from tests.fuzz.command import TimeLimit, run_command, run_getd
from tests.fuzz.mutate import mutate, odd_text, odd_value
from tests.fuzz.seeds import CONFIG, FACTS, QUESTIONS, SEEDS, SHAPES, SPACE, typed_parquet

FORMS: tuple[str, ...] = get_args(ReadFormat)
Files = dict[str, bytes]  # by name
Way = Callable[[Random, Path], tuple[Files, Callable[[Path], Outcome]]]


def cases(seed: int, shared: Path, start: int = 0) -> Iterator[Case]:
    """Case ``i`` depends on the seed and ``i`` alone; a small run is trained into ``shared``."""
    run = trained_run(shared)
    for number in count(start):
        yield _case(Random(f"{seed}/{number}"), f"inputs-{number}", run)


def trained_run(shared: Path) -> Path:
    """A run over the facts of the seeds, and over names that are hard to show."""
    path = shared / "inputs-run"
    if not path.exists():
        facts = [
            *FACTS,
            ("plays", "\x1b[31mred", "[bold]"),
            ("plays", "Ada", "line\nend"),
            ("plays", "Ada", "\u202eback"),
        ]
        kb = getd.KnowledgeBase.from_facts(
            {"train": facts * 2, "valid": facts[:2], "test": facts[:2]}
        )
        config = {
            "model": {"entity_dim": 4, "relation_dim": 4, "ring_ranks": 2},
            "training": {"epochs": 1, "threads": 1},
        }
        getd.train(kb, out=path, config=config)
    return path


def _case(random: Random, name: str, run: Path) -> Case:
    way = random.choices(*zip(*WAYS.items(), strict=True))[0]
    files, use = way(random, run)

    def make(folder: Path) -> None:
        for file, data in files.items():
            (folder / file).write_bytes(data)

    return Case(name, make, use)


def _damaged(random: Random, seeds: dict[str, bytes] = SEEDS) -> tuple[str, bytes]:
    """A damaged file: most from a seed, some packed, some of an odd shape."""
    chance = random.random()
    if chance < 0.04:
        return random.choice(SHAPES)(random.choice((10, 100, 1000)))
    if chance < 0.08:
        return "typed.parquet", typed_parquet(random)
    name = random.choice(list(seeds))
    data = mutate(random, seeds[name])
    if random.random() < 0.05:
        packed: Callable[[bytes], bytes] = (
            partial(gzip.compress, mtime=0) if name < "q" else zstandard.compress
        )
        return f"{name}.gz", packed(data)
    if random.random() < 0.1:  # another ending than the content
        name = random.choice(
            ("facts", "facts.txt", "facts.csv", "facts.json", "facts.parquet", "facts.tsv")
        )
    return name, data


def _options(random: Random) -> dict[str, Any]:
    """How a command reads its data, now and then in another way."""
    reading: dict[str, Any] = {}
    if random.random() < 0.25:
        reading["format"] = random.choice(FORMS)
    if random.random() < 0.1:
        reading["escaped"] = True
    if random.random() < 0.05:
        reading["one_arity"] = True
    if random.random() < 0.05:
        reading["relation"] = odd_text(random)
    if random.random() < 0.03:
        reading[random.choice(("arity", "max_arity"))] = random.choice((2, 0, -1, 10**20))
    return {"reading": Reading(**reading), "json": random.random() < 0.6}


def _info_file(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random)
    options = _options(random)
    return {name: data}, lambda folder: run_command(info, str(folder / name), **options)


def _info_folder(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random)
    ending = "".join(Path(name).suffixes) or ".txt"
    other = SEEDS.get(name, SEEDS["facts.tsv"])
    files = {
        f"train{ending}": data,
        f"test{ending}": other if random.random() < 0.7 else mutate(random, other),
    }
    options = _options(random)
    return files, lambda folder: run_command(info, str(folder), **options)


def _shell(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    """The whole way, from the words of a command line."""
    name, data = _damaged(random)
    words = [
        "--format",
        "--arity",
        "--one-arity",
        "--json",
        "--relation",
        "x",
        "3",
        "jsonl",
        odd_text(random),
    ]
    flags = [word.replace("\0", "") for word in random.sample(words, random.choice((0, 0, 1, 2)))]
    return {name: data}, lambda folder: run_getd("info", folder / name, *flags)


def _convert(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random)
    form = random.choice(("tsv", "csv", "parquet", "jsonl", "hyper-csv"))
    target = random.choice(("out", f"out.{form.removeprefix('hyper-')}"))
    options = _options(random)

    def use(folder: Path) -> Outcome:
        outcome = run_command(convert, str(folder / name), str(folder / target), to=form, **options)
        left = sorted(path.name for path in folder.iterdir() if path.name != name)
        if left != [target] * (outcome.code == 0):
            return Outcome(outcome.code, outcome.out, outcome.err, f"left behind: {left}")
        return outcome

    return {name: data}, use


def _predict(random: Random, run: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random, QUESTIONS)
    flags = {flag: random.random() < 0.3 for flag in ("json", "why", "include_known")}
    return {name: data}, lambda folder: run_command(predict, run, questions=folder / name, **flags)


def _ask(random: Random, run: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    question = [
        *random.choice(
            [
                ["plays", "?", "Oxbow"],
                ["moves", "Ada", "?", "Rovers", "?"],
                ["plays", "who=?", "club=Oxbow"],
            ]
        )
    ]
    question[random.randrange(len(question))] = odd_text(random) if random.random() < 0.7 else "?"
    return {}, lambda _: run_getd("predict", run, *question)


def _rate(random: Random, run: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random)
    json = random.random() < 0.3
    return {name: data}, lambda folder: run_command(rate, run, folder / name, json=json)


def _extend(random: Random, run: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    name, data = _damaged(random)
    return {name: data}, lambda folder: run_command(
        extend, run, folder / name, out=folder / "extended"
    )


def _complete(random: Random, run: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    relation = random.choice(("plays", odd_text(random)))
    file = random.choice(("out.tsv", "out.jsonl", "out.parquet", "out.x"))
    partial_file = mutate(
        random,
        b'{"asked": {"run": "", "relation": 0, "top": 100}, "done": 1, "entities": [[0, 1]]}',
    )
    files = {f"{file}.partial": partial_file} if random.random() < 0.7 else {}
    return files, lambda folder: run_command(complete, run, relation=relation, out=folder / file)


def _config(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    settings = []
    if random.random() < 0.4:
        key = random.choice(
            (
                "training.epochs",
                "model.name",
                "model.ring_ranks",
                "data.x",
                "memory",
                "",
                "training.",
            )
        )
        value = random.choice(
            (
                odd_text(random),
                "[" * 3000,
                "9" * 5000,
                "{a = 1}",
                '"',
                "1979-99-99",
                "nan",
                "x\ny = 2",
            )
        )
        settings = [f"{key}={value}"]
    data = mutate(random, CONFIG) if not settings or random.random() < 0.5 else CONFIG
    missing = "/nowhere/missing.tsv"
    return {"config.toml": data}, lambda folder: run_getd(
        "train", missing, "--config", folder / "config.toml", *settings
    )


def _space(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    return {"space.toml": mutate(random, SPACE)}, lambda folder: _called(
        lambda: read_space(str(folder / "space.toml"), Config.parse({}, "getd"))
    )


def _settings(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    """Configs as tables of odd values."""
    tables: dict[str, Any] = {"model": {"entity_dim": 8}, "training": {"epochs": 1}, "memory": {}}
    section = random.choice(list(tables))
    key = random.choice(
        (
            "name",
            "entity_dim",
            "ring_ranks",
            "ring_shape",
            "epochs",
            "learning_rate",
            "regime",
            "use",
        )
    )
    tables[section] = odd_value(random) if random.random() < 0.3 else {key: odd_value(random)}
    return {}, lambda _: _called(lambda: Config.parse(override(tables, [])))


def _facts(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    facts: list[Any] = [list(fact) for fact in FACTS]
    place = random.randrange(len(facts))
    facts[place][random.randrange(len(facts[place]))] = odd_value(random)
    if random.random() < 0.3:
        facts[place] = odd_value(random)
    return {}, lambda _: _called(lambda: getd.KnowledgeBase.from_facts(facts))


def _frame(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    names = random.sample(["relation", "who", "e1", "e2", "roles", odd_text(random)], 2)
    values = [
        [odd_value(random) if random.random() < 0.3 else "a" for _ in range(3)] for _ in names
    ]
    frame = {
        name: pl.Series(column, dtype=pl.Object) for name, column in zip(names, values, strict=True)
    }
    if random.random() < 0.7:
        frame = {
            name: pl.Series([str(value) for value in column])
            for name, column in zip(names, values, strict=True)
        }
    return {}, lambda _: _called(lambda: getd.KnowledgeBase.from_dataframe(pl.DataFrame(frame)))


def _toml(random: Random, _: Path) -> tuple[Files, Callable[[Path], Outcome]]:
    return {"a.toml": mutate(random, CONFIG)}, lambda folder: _called(
        lambda: read_toml(folder / "a.toml")
    )


def _called(function: Callable[[], object]) -> Outcome:
    """A call from Python; what it raises on purpose is as if the command line had said it."""
    try:
        function()
    except GetdError as error:
        return Outcome(error.exit_code, err=f"{error}\n")
    except TimeLimit:
        raise
    except BaseException:
        return Outcome(70, traceback=traceback.format_exc())
    return Outcome(0)


WAYS: dict[Way, float] = {
    _info_file: 40,
    _info_folder: 12,
    _shell: 2,
    _convert: 15,
    _predict: 4,
    _ask: 1,
    _rate: 4,
    _extend: 0.3,
    _complete: 0.5,
    _config: 8,
    _toml: 3,
    _space: 3,
    _settings: 3,
    _facts: 3,
    _frame: 3,
}

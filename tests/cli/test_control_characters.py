"""Names are shown, never obeyed.

No control character and no markup of a file reaches the terminal, a page or a log.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import getd as package
from getd.cli.output import print_line, print_message, print_notices, print_table
from getd.tuning.study_page import _text
from tests.conftest import Result

Getd = Callable[..., Result]
RED = "\x1b[31mred"
NAMES = (RED, "line\nend", "\u202eback", "\x9bc1", "[bold]", "del\x7f", "sep\u2028")
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def check(result: Result) -> None:
    """Nothing acts on the terminal."""
    assert result.code == 0, result.err
    assert not ACTING.search(result.out + result.err)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    facts = [
        ("plays", f"player {i}", NAMES[(i + shift) % len(NAMES)])
        for i in range(10)
        for shift in range(3)
    ]
    kb = package.KnowledgeBase.from_facts(
        {"train": facts, "valid": facts[:3], "test": facts[:3]}, name=f"data{RED}"
    )
    config = {
        "model": {"entity_dim": 4, "relation_dim": 4, "ring_ranks": 2},
        "training": {"epochs": 1, "threads": 1},
    }
    return package.train(kb, out=tmp_path_factory.mktemp("control") / "run", config=config).path


def test_info_shows_names_escaped_and_json_keeps_them_exact(tmp_path: Path, getd: Getd) -> None:
    path = tmp_path / "facts.jsonl"
    records = [
        {"relation": f"r{name}", "entities": {f"role{name}": "a", "[red]b": name}} for name in NAMES
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    result = getd("info", path)
    check(result)
    assert r"r\x1b[31mred  role\x1b[31mred 1, [red]b 1" in result.out
    assert "r[bold]" in result.out
    result = getd("info", path, "--json")
    check(result)
    assert set(json.loads(result.out)["by_relation"]) == {f"r{name}" for name in NAMES}


def test_a_bad_line_shows_what_it_holds_escaped(tmp_path: Path, getd: Getd) -> None:
    path = tmp_path / "train.txt"
    path.write_text(f"{RED}\n{'x' * 100_000}\n")
    result = getd("info", path)
    first, second = result.err.splitlines()
    message = "expected a relation and at least one entity, found only"
    assert first == f"{path}:1: {message} '\\x1b[31mred' (2 bad lines)"
    assert len(second) == 300
    assert second.startswith(f"{path}:2: {message} 'xxx")


def test_a_path_is_shown_escaped(tmp_path: Path, getd: Getd) -> None:
    (tmp_path / RED).write_text("r a b\n")
    check(getd("info", tmp_path / RED))
    result = getd("info", tmp_path / f"{RED}\n")
    assert result.err == f"{tmp_path}/\\x1b[31mred\\n: no such file or folder\n"
    assert getd("info", "demo", f"--{RED}").err == "unknown option: --\\x1b[31mred.\n"


def test_answers_ratings_and_reasons_show_names_escaped(
    tmp_path: Path, getd: Getd, run: Path
) -> None:
    result = getd("predict", run, "plays", "?", "player 1", "--include-known", "--why", "--top", 40)
    check(result)
    assert all(
        shown in result.out for shown in (r"\x1b[31mred", "[bold]", r"line\nend", r"\u202eback")
    )
    result = getd(
        "predict", run, "plays", "player 1", "?", "--include-known", "--top", 40, "--json"
    )
    check(result)
    assert {answer["entity"] for answer in json.loads(result.out)["answers"]} >= set(NAMES)
    check(getd("rate", run, "--suspicious", 30))
    check(getd("evaluate", run, "--by", "relation"))
    check(
        getd(
            "complete",
            run,
            "--relation",
            "plays",
            "--out",
            tmp_path / f"{RED}.tsv",
            "--min-confidence",
            0,
        )
    )
    result = getd("predict", run, "plays", "?", f"{RED}!")
    assert result.err == "unknown entity '\\x1b[31mred!'; did you mean '\\x1b[31mred'?\n"


def test_tables_lines_and_notices_show_text_escaped(capfd: pytest.CaptureFixture[str]) -> None:
    print_table(RED, [RED, "[b]"], [[RED, "[/b]"], ["x" * 5000, 1]])
    print_line(RED)
    out, err = capfd.readouterr()
    assert not ACTING.search(out)
    assert r"\x1b[31mred" in out
    assert "[/b]" in out
    assert out.count("x") == 999 + 4
    print_message(RED * 100)
    print_notices(["line\nend"])
    out, err = capfd.readouterr()
    assert not ACTING.search(err)
    assert [len(line) for line in err.splitlines()] == [300, len(r"note: line\nend")]


def test_commands_print_texts_of_files_through_output_alone() -> None:
    for path in sorted((Path(package.__file__).parent / "cli").rglob("*.py")):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]
        printed = [
            call.args
            for call in calls
            if isinstance(call.func, ast.Name) and call.func.id == "print"
        ]
        constant = all(
            isinstance(argument, ast.Constant) for arguments in printed for argument in arguments
        )
        assert constant or path.name in ("output.py", "app.py"), path.name


def test_a_page_of_trials_shows_values_escaped() -> None:
    assert _text(RED) == r"\x1b[31mred"


def test_the_log_of_the_service_shows_messages_escaped() -> None:
    pytest.importorskip("uvicorn", reason="getd[serve] is not installed")
    from getd.serving.log import LOG_CONFIG, VisibleFormatter

    try:
        raise ValueError(RED)
    except ValueError:
        record = logging.LogRecord(
            "getd", logging.ERROR, "", 0, "failed on %s", (RED,), sys.exc_info()
        )
    lines = VisibleFormatter("%(levelname)s: %(message)s").format(record).split("\n")
    assert (lines[0], lines[-1]) == (r"ERROR: failed on \x1b[31mred", r"ValueError: \x1b[31mred")
    assert set(LOG_CONFIG["loggers"]) == {"getd", "uvicorn", "uvicorn.access"}


def test_the_pages_of_the_service_escape_the_same_characters_wherever_they_show_text() -> None:
    folder = Path(package.__file__).parent / "serving" / "static"
    escaped = r"\u007f-\u009f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]/g"
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert rf"const visible = text => text.replace(/[\u0000-\u001f{escaped}" in page
    assert rf"[\u0000-\u0009\u000b-\u001f{escaped}" in (folder / "docs.html").read_text(
        encoding="utf-8"
    )

    # Texts come into the page by element(), tell() and four other ways; each makes them visible.
    assert 'children.map(child => typeof child === "string" ? visible(child) : child)' in page
    assert set(re.findall(r"textContent = ([^;]*);", page)) == {
        "visible(text)",
        "visible(error.message)",
        '"…"',
    }
    assert set(re.findall(r"fillText\((\w+)", page)) == {"label"}
    assert "const label = visible(point.entity)" in page
    assert "document.title = visible(" in page
    assert "innerHTML" not in page

"""The benchmarks run, check what they time, and report it; at these sizes figures mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main, measure, names
from benchmarks.harness import (
    Figure,
    Memory,
    Plot,
    Result,
    Series,
    best,
    memory,
    peak_memory,
    slope,
)
from benchmarks.report import BEGIN, END, from_json, to_json, write
from benchmarks.subjects import multiply_adds, ring_products

FIGURES = [Figure("step over bare", 1.2, "x", 1.5), Figure("speed-up", 20, "x", 15, at_least=True)]
CURVES = Plot(
    "time", "entities", "s", [Series("ours", [1, 10], [1, 2]), Series("bare", [1, 10], [1, 3])]
)
BARS = Plot("parts", "", "ms", [Series("ms", [0, 1], [1, 2])], log=False, x_ticks=["loss", "rest"])
TABLES = {"demo": {"getd": {"facts a second": 1234.0, "parameters": 56.0}}}
RESULT = Result(
    "made_up", FIGURES, [CURVES, BARS, BARS], {"seconds": {"step": 1.0}}, ("getd", "torch"), TABLES
)
BEYOND = Result("made_up", [Figure("step over bare", 1.6, "x", 1.5)], [], {}, ())


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Any]:
    """Where a run of all benchmarks may write, and one benchmark to run."""
    (tmp_path / "README.md").write_text(
        f"before\n{BEGIN}\noutdated\n{END}\nafter\n", encoding="utf-8"
    )
    return {"folder": tmp_path / "results", "readme": tmp_path / "README.md"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("memory", "serving") else name
        for name in names()
    ],
)
def test_a_benchmark_asserts_its_results_and_reports_in_the_common_form(
    name: str, tmp_path: Path
) -> None:
    outcome = measure(name, quick=True)
    if "skipped" in outcome:
        pytest.skip(outcome["skipped"])
    result = from_json(json.loads(json.dumps(outcome)))
    assert result.name == name
    assert result.figures
    assert all(isinstance(figure.value, float | int) for figure in result.figures)
    assert {"processor", "cores", "memory_gib", "python", "versions"} <= set(outcome["machine"])
    write(outcome, tmp_path)
    assert (tmp_path / f"{name}.svg").exists() == bool(result.plots)


def test_a_result_is_the_same_after_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(RESULT)))) == RESULT


def test_results_are_kept_with_the_machine_and_drawn(
    folders: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts"], run=lambda name, quick: to_json(RESULT), **folders) == 0
    kept = json.loads((folders["folder"] / "made_up.json").read_text())
    assert set(kept) == {
        "name",
        "command",
        "figures",
        "details",
        "peak_memory_mib",
        "plots",
        "tables",
        "machine",
    }
    assert kept["command"] == "python -m benchmarks made_up"
    assert kept["figures"][0] == {
        "name": "step over bare",
        "value": 1.2,
        "unit": "x",
        "limit": 1.5,
        "at_least": False,
        "holds": True,
    }
    assert set(kept["machine"]["versions"]) == {"getd", "torch"}
    assert sorted(path.name for path in folders["folder"].iterdir()) == [
        "made_up.json",
        "made_up.svg",
    ]
    shown = capsys.readouterr().out
    assert "holds" in shown
    assert "1,234" in shown


def test_the_page_gets_a_table_between_its_markers(folders: dict[str, Any]) -> None:
    for _ in range(2):
        main(["facts"], run=lambda name, quick: to_json(RESULT), **folders)
        page = folders["readme"].read_text(encoding="utf-8")
        assert page.startswith(f"before\n{BEGIN}\n\n### made_up\n")
        assert page.endswith(f"{END}\nafter\n")
        assert (
            page.count(
                "| step over bare | 1.2 x | ≤ 1.5 | holds |\n| speed-up | 20 x | ≥ 15 | holds |"
            )
            == 1
        )
        assert "![made_up](results/made_up.svg)" in page
        assert (
            "| demo | facts a second | parameters |\n|---|---:|---:|\n| getd | 1,234 | 56 |\n"
            in page
        )
        assert "outdated" not in page


def test_a_figure_beyond_its_limit_is_a_failure(
    folders: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts"], run=lambda name, quick: to_json(BEYOND), **folders) == 1
    assert "beyond" in capsys.readouterr().out


def test_quick_checks_no_limits_and_keeps_nothing(folders: dict[str, Any]) -> None:
    before = folders["readme"].read_text(encoding="utf-8")
    assert main(["facts", "--quick"], run=lambda name, quick: to_json(BEYOND), **folders) == 0
    assert not folders["folder"].exists()
    assert folders["readme"].read_text(encoding="utf-8") == before


def test_a_benchmark_that_breaks_is_a_failure(
    folders: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["facts", "--quick"], run=lambda name, quick: None, **folders) == 1
    assert capsys.readouterr().out == "benchmark facts failed\n"


def test_a_missing_package_is_said_in_one_line_and_is_no_failure(
    folders: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = {"skipped": "it needs pykeen; pip install 'getd[bench]'"}
    assert main(["facts"], run=lambda name, quick: skipped, **folders) == 0
    assert (
        capsys.readouterr().out
        == "benchmark facts skipped: it needs pykeen; pip install 'getd[bench]'\n"
    )


def test_a_mistyped_name_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["trainign"])
    known = ", ".join(names())
    assert (
        capsys.readouterr().err
        == f"no benchmark 'trainign'; did you mean 'training'? (there are {known})\n"
    )


@pytest.mark.parametrize(
    ("value", "at_least", "holds"),
    [
        (1.5, False, True),
        (1.6, False, False),
        (1.5, True, True),
        (1.4, True, False),
        (float("nan"), True, False),
    ],
)
def test_a_figure_holds_up_to_its_limit(value: float, at_least: bool, holds: bool) -> None:
    assert Figure("ratio", value, "x", 1.5, at_least).holds is holds
    assert Figure("ratio", value, "x").holds


def test_works_take_turns() -> None:
    order: list[str] = []
    assert len(best(lambda: order.append("a"), lambda: order.append("b"), repeats=2)) == 2
    assert order == ["a", "b", "a", "b"]


def test_the_slope_is_the_exponent() -> None:
    assert slope([10, 100, 1000], [5, 50, 500]) == pytest.approx(1)


def test_memory_counts_the_peak_of_the_work_alone() -> None:
    code = """
import sys
held = bytearray(b"x") * 50_000_000
def work():
    taken = bytearray(b"x") * int(sys.argv[1])
    return len(taken)
def check(length):
    assert length == 20_000_000
"""
    measured = memory(code, "20000000")
    assert isinstance(measured, Memory)
    assert measured.value == 20_000_000
    assert 19e6 < measured.growth < 25e6
    assert measured.kept < 5e6
    assert measured.peak > 70e6


def test_a_child_whose_result_is_wrong_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)^the child process failed:\n.*AssertionError"):
        peak_memory("def work(): return 1\ndef check(value): assert value == 2")


@pytest.mark.parametrize("arity", [2, 3, 4, 5, 6])
def test_the_count_of_multiply_adds_is_that_of_the_design(arity: int) -> None:
    n, d, rank, n_entities = arity, 5, 7, 11
    assert ring_products(n) == 3 * n - 4
    forward = (n + 1) * d * rank**2 + (3 * n - 4) * rank**3 + n * d * rank**2 + n * d * n_entities
    assert multiply_adds(n, d, d, rank, n_entities) == 3 * forward

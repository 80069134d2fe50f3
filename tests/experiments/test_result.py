"""Results as files, committed ones and those of older versions, and the page made from them."""

from __future__ import annotations

import json
from pathlib import Path

from getd.experiments.claims import check_claims
from getd.experiments.result import (
    Claims,
    Measurement,
    Statistics,
    chosen_by,
    parse_result,
    read_results,
    write_result,
)
from getd.experiments.result_index import ResultIndex
from getd.experiments.results_page import page_text
from getd.experiments.rows import Point, find_row

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
METRICS = {"metrics": {"mrr": 0.5}}


def test_results_say_what_they_must() -> None:
    for result in read_results(EXPERIMENTS):
        keys = result.model_fields_set
        assert {"row", "seed", "versions", "machine"} <= keys
        if find_row(result.row).kind != "table":
            assert isinstance(result, Measurement)
            needed = {"data", "model", "metrics", "interval", "protocol", "config", "seconds"}
            assert needed <= keys
            assert 0 < result.mrr <= 1


def test_a_result_is_written_as_it_was_measured(tmp_path: Path) -> None:
    content = {
        "data": "demo",
        "metrics": {"mrr": 0.5, "questions": 12},
        "protocol": {"split": "test", "trained_on": ["train"], "sample": None},
        "parameters": 3,
        "curves": {"epoch": [1], "train_loss": [2.5]},
    }
    point = Point("figures/size", 1, series="GETD, rank 1", x=5)
    path = write_result(tmp_path, point, Measurement.model_validate(content))
    assert path.name == "figures-size-getd-rank-1-5-seed-1.json"

    written = json.loads(path.read_text(encoding="utf-8"))
    stated = {"row": "figures/size", "seed": 1, "series": "GETD, rank 1", "x": 5}
    assert list(written) == [*stated, *content, "versions", "commit", "machine"]
    assert {key: written[key] for key in (*stated, *content)} == stated | content
    (read,) = read_results(tmp_path)
    assert read == parse_result(written)


def test_results_of_before_call_baselines_floors() -> None:
    older = parse_result({"row": "best/a", **METRICS, "floors": {"lookup": 0.25}})
    assert isinstance(older, Measurement)
    assert older.baselines == {"lookup": 0.25}
    rows = {"demo": {"found": [1, 2], "floors": {"lookup": 0.25}}}
    table = parse_result({"row": "statistics", "rows": rows})
    assert isinstance(table, Statistics)
    assert table.rows["demo"].baselines == {"lookup": 0.25}
    assert table.rows["demo"].counts == (1, 2)


def test_results_of_before_say_which_filter_chose_them() -> None:
    protocol = {"split": "test", "trained_on": ["train"]}
    plain = {**METRICS, "protocol": protocol}
    last = {"chosen_on": None, "filter": None, "sample": None}
    cases = {
        "valid, all splits in the filter": plain,
        "test, all splits in the filter": {**plain, "curves": {}},
        "the last epoch": {**METRICS, "protocol": {**protocol, "epoch": last}},
    }
    for words, content in cases.items():
        assert chosen_by(Measurement.model_validate(content)) == words


def test_the_committed_page_is_made_from_the_committed_results() -> None:
    page = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    assert page_text(ResultIndex(read_results(EXPERIMENTS))) == page


def test_the_committed_verdicts_are_those_of_the_committed_results() -> None:
    results = ResultIndex(read_results(EXPERIMENTS))
    assert results.require_table(Claims).claims == check_claims(results)

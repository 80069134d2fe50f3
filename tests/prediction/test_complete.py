"""Missing facts are written in every form; an interrupted completion resumes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from getd.errors import RunError
from getd.prediction.complete import CompletionRequest, complete
from getd.run import Run
from tests.prediction.named_facts import every_fact


def test_missing_facts_are_written_in_every_form_and_resumed(
    demo_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answerer = demo_run.predictor.answerer
    relation = demo_run.kb.relations.id("plays for")
    request = CompletionRequest("demo", relation, top=20, min_confidence=0.1)
    monkeypatch.setattr("getd.prediction.complete.BATCH_ROWS", 100)
    whole = tmp_path / "whole.tsv"
    number = complete(answerer, request, whole)
    rows = [line.split("\t") for line in whole.read_text().splitlines()]
    assert len(rows) == number <= 20
    confidence = [float(row[-2]) for row in rows]
    assert confidence == sorted(confidence, reverse=True)
    assert confidence[-1] >= 0.1
    assert not set(every_fact(demo_run.kb)) & {tuple(row[:-2]) for row in rows}

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    parquet = tmp_path / "facts.parquet"
    with pytest.raises(KeyboardInterrupt):
        complete(answerer, request, parquet, stop)
    assert [path.name for path in tmp_path.glob("*.partial")] == ["facts.parquet.partial"]
    with pytest.raises(RunError, match="begun with another run or other settings"):
        complete(answerer, CompletionRequest("demo", relation, 5, 0.1), parquet)
    complete(answerer, request, parquet)
    frame = pl.read_parquet(parquet)
    assert frame.columns == ["relation", "player", "club", "season", "confidence", "plausibility"]
    written = [list(row) for row in frame.select(frame.columns[:4]).iter_rows()]
    assert written == [row[:4] for row in rows]
    lines = tmp_path / "facts.jsonl"
    complete(answerer, request, lines)
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [record["entities"] for record in records] == [row[1:4] for row in rows]
    assert [rating.fact[1:] for rating in demo_run.rate(lines)] == [tuple(row[1:4]) for row in rows]
    for name, column in (("confidence", -2), ("plausibility", -1)):
        numbers = pytest.approx([float(row[column]) for row in rows], abs=1e-6)
        assert [record[name] for record in records] == numbers
        assert frame[name].to_list() == numbers
    assert not list(tmp_path.glob("*.partial"))


def test_a_file_that_exists_is_replaced_only_on_request(calibrated: Run, tmp_path: Path) -> None:
    out = tmp_path / "facts.tsv"
    out.write_text("mine")
    with pytest.raises(RunError) as caught:
        calibrated.complete("r", out, top=3, min_confidence=0.0)
    assert str(caught.value) == f"{out} exists; choose another place or pass --overwrite"
    assert out.read_text() == "mine"

    number = calibrated.complete("r", out, top=3, min_confidence=0.0, overwrite=True)
    assert len(out.read_text().splitlines()) == number == 3

"""The table of formats and the closed sets of names agree."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from getd.choices import FormatChoice, ReadFormat, WriteFormat
from getd.formats.registry import ENDINGS, FORMATS, stem


def test_every_format_that_can_be_chosen_is_in_the_table_and_the_others_are_not_written() -> None:
    assert set(FORMATS) == set(get_args(ReadFormat))
    assert {name for name, form in FORMATS.items() if form.write} == set(get_args(WriteFormat))
    assert get_args(FormatChoice) == ("auto", *get_args(ReadFormat))
    assert all(name == form.name for name, form in FORMATS.items())


def test_the_files_that_we_write_have_an_ending_that_we_read() -> None:
    suffixes = {name: FORMATS[name].suffix for name in get_args(WriteFormat)}
    assert suffixes == {
        "tsv": ".tsv",
        "csv": ".csv",
        "parquet": ".parquet",
        "jsonl": ".jsonl",
        "hyper-csv": ".csv",
    }
    assert set(suffixes.values()) <= set(ENDINGS)


@pytest.mark.parametrize("ending", [*ENDINGS, *(f"{ending}.gz" for ending in ENDINGS), ""])
def test_the_stem_has_no_ending(ending: str) -> None:
    assert stem(Path(f"facts/n-ary.train{ending}")) == "n-ary.train"

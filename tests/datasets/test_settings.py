"""The flags and the settings of reading are the same."""

from __future__ import annotations

from dataclasses import asdict

from getd.cli.options import Reading
from getd.datasets.settings import DataSettings


def test_every_setting_of_reading_is_a_flag_with_the_same_default() -> None:
    assert asdict(Reading()) == DataSettings().model_dump()

"""Settings come from TOML and flags, and every mistake is one sentence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Gt, Le
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PositiveInt, ValidationError

from getd.config import Settings, build, override, read_toml, to_toml, with_values
from getd.errors import ConfigError
from getd.models import MODELS
from getd.runs.config import Config, TrainSettings


class Training(Settings):
    """A model such as a room would own."""

    epochs: PositiveInt = 200
    learning_rate: Annotated[float, Gt(0), Le(1)] = 1e-3
    regime: Literal["1vsall", "kvsall"] = "1vsall"
    patience: PositiveInt | None = 10


def message(values: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as caught:
        build(Training, values, "training")
    return str(caught.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        build(Training, {}, "training").epochs = 3  # type: ignore[misc]


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    assert (
        message({"learning_rat": 1})
        == "no setting training.learning_rat; did you mean 'learning_rate'?"
    )
    assert message({"colour": 1}) == "no setting training.colour"


def test_a_mistyped_value_is_refused_with_what_was_found() -> None:
    assert message({"epochs": "many"}) == (
        "training.epochs: input should be a valid integer, "
        "unable to parse string as an integer, found 'many'"
    )
    assert message({"epochs": 0}) == "training.epochs: input should be greater than 0, found 0"
    assert (
        message({"regime": "1vsal"})
        == "training.regime is one of 1vsall, kvsall, found '1vsal'; did you mean '1vsall'?"
    )


def test_a_missing_setting_is_named() -> None:
    class Needy(Settings):
        data: str

    with pytest.raises(ConfigError, match=r"^setting row\.data is missing$"):
        build(Needy, {}, "row")


def test_overrides_are_toml_values_or_plain_text() -> None:
    tables = override(
        {"training": {"epochs": 5}},
        ["training.epochs=7", "training.regime=kvsall", "model.ranks=[2, 3]"],
    )
    assert tables == {"training": {"epochs": 7, "regime": "kvsall"}, "model": {"ranks": [2, 3]}}


def test_overrides_leave_what_they_are_given_alone() -> None:
    tables = {"training": {"epochs": 5}}
    override(tables, ["training.epochs=7"])
    assert tables == {"training": {"epochs": 5}}


@pytest.mark.parametrize("wrong", ["epochs=3", "training.epochs", "=3", ".=3", "training.=3"])
def test_an_override_without_section_key_and_value_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override({}, [wrong])
    assert str(caught.value) == f"expected section.key=value, found {wrong!r}"


def test_an_override_below_a_single_value_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^'data' is a single value, not a section, in 'data.x=1'$"
    ):
        override({"data": "demo"}, ["data.x=1"])


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(KEYS, st.one_of(VALUES, st.lists(VALUES), st.dictionaries(KEYS, VALUES))))
def test_toml_that_we_write_reads_back_the_same(tables: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(tables)) == tables


def test_unset_values_are_left_out_of_toml() -> None:
    assert to_toml({"training": {"patience": None, "epochs": 3}}) == "[training]\nepochs = 3\n"


def test_tables_in_a_list_are_lines_of_their_own() -> None:
    members = [{"name": "getd", "ranks": [2, 3], "shape": None}, {"a b": True}]
    text = '[model]\nmembers = [\n  {name = "getd", ranks = [2, 3]},\n  {"a b" = true},\n]\n'
    assert to_toml({"model": {"members": members}}) == text
    assert tomllib.loads(text)["model"]["members"][1] == {"a b": True}


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^cannot write \{1\} as TOML$"):
        to_toml({"x": {1}})


def test_a_toml_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert str(caught.value) == f"cannot read {path}: No such file or directory"
    path.write_text("epochs 3")
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert (
        str(caught.value)
        == f"{path}: expected '=' after a key in a key/value pair (at line 1, column 8)"
    )
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert str(caught.value) == f"{path}: expected UTF-8, found byte 0xff at offset 8"
    path.write_text('data = "demo"')
    assert read_toml(path) == {"data": "demo"}


def test_values_go_into_a_config_and_leave_it_as_it_was() -> None:
    config = {"data": "demo", "training": {"epochs": 2}}
    assert with_values(config, {"training.decay": 0.9, "model.ring_ranks": 3}) == {
        "data": "demo",
        "training": {"epochs": 2, "decay": 0.9},
        "model": {"ring_ranks": 3},
    }
    assert config == {"data": "demo", "training": {"epochs": 2}}


def test_a_setting_of_another_model_names_that_model() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.parse({"model": {"entity_dim": 4, "dropout": 0.1}})
    problem = "getd has no setting model.dropout, and is the model where none is named"
    assert str(caught.value) == f"{problem}; encoder has it: add --model encoder"
    with pytest.raises(ConfigError, match=r"; (\S+) has it: add --model \1$"):
        Config.parse({"model": {setting_of_one_model(): 1}})
    with pytest.raises(ConfigError, match=r"^no setting model.entity_dom; did you mean"):
        Config.parse({"model": {"entity_dom": 4}})
    with pytest.raises(ConfigError, match=r"^no setting model.dropout"):
        Config.parse({"model": {"name": "getd", "dropout": 0.1}})


def setting_of_one_model() -> str:
    """A setting that neither GETD nor the encoder has."""
    common = {*MODELS["getd"].settings.model_fields, *MODELS["encoder"].settings.model_fields}
    settings = {key for entry in MODELS.values() for key in entry.settings.model_fields}
    return min(settings - common)


def test_the_docs_name_the_defaults_of_the_settings() -> None:
    """In the table of the sampled regime, and in sentences elsewhere."""
    docs = Path(__file__).parent.parent / "docs"
    training = (docs / "training.md").read_text(encoding="utf-8")
    quickstart = (docs / "quickstart.md").read_text(encoding="utf-8")
    defaults = TrainSettings().model_dump()

    table = training.partition("| setting | default | |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| `?([\w.]+)", table, re.MULTILINE)
    assert len(rows) == table.count("\n")
    for name, default in rows:
        assert default == str(defaults[name]).lower().removesuffix(".0"), name

    epochs = re.search(r"By default this model trains for up to (\d+) epochs", quickstart)
    rate = re.search(r"The default learning rate is (\d\.\d+)\.", training)
    assert epochs
    assert rate
    assert int(epochs[1]) == defaults["epochs"]
    assert float(rate[1]) == defaults["learning_rate"]

"""What may be searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from getd.errors import ConfigError
from getd.models.registry import MODELS
from getd.runs.config import Config
from getd.tuning.search import distribution
from getd.tuning.space import SPACES, Choices, Range, Space, read_space


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SPACES)
def test_every_space_fits_every_model(name: str, model: str) -> None:
    space = read_space(name, Config.parse({}, model))
    assert isinstance(space["training.learning_rate"], Range)
    assert ("model.ring_ranks" in space) == (name == "wide" and model == "getd")


def test_the_papers_space_is_the_papers() -> None:
    assert read_space("paper", Config.parse({}, "getd")) == {
        "training.learning_rate": Range(low=1e-4, high=1e-1, log=True),
        "training.decay": Choices(choices=(0.9, 0.995, 1.0)),
        "model.entity_dropout": Range(low=0.0, high=0.5),
        "model.query_dropout": Range(low=0.0, high=0.5),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[training.decai]\nchoices = [1.0]", "no setting training.decai; did you mean 'decay'?"),
        (
            "[modell.entity_dim]\nchoices = [1]",
            "expected tables [model.KEY] and [training.KEY], found 'modell'",
        ),
        (
            "[training]\ndecay = 1.0",
            "expected tables [model.KEY] and [training.KEY], found 'training'",
        ),
        ("[training.decay]\nchoices = []", "training.decay: expected choices, found none"),
        ("[training.decay]\nlow = 1.0", "setting {path}: training.decay.high is missing"),
        (
            "[training.decay]\nlow = 1.0\nhigh = 0.5",
            "training.decay: expected low ≤ high, found 1.0 and 0.5",
        ),
        (
            "[training.n3]\nlow = 0.0\nhigh = 0.5\nlog = true",
            "training.n3: expected low > 0 with log = true, found 0.0",
        ),
    ],
)
def test_a_mistake_in_a_space_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_space(str(path), Config.parse({}, "getd"))
    assert str(error.value) == (
        message.format(path=path) if "{path}" in message else f"{path}: {message}"
    )


def test_values_that_training_would_refuse_are_refused_before_it(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text("[training.decay]\nchoices = [0.9, 1.5]")
    with pytest.raises(
        ConfigError, match=r"^training\.decay: input should be less than or equal to 1, found 1\.5$"
    ):
        read_space(str(path), Config.parse({}, "getd"))


def test_a_mistyped_space_gets_the_nearest() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^no space or file 'papr'; did you mean 'paper'\? \(there are paper, wide\)$",
    ):
        read_space("papr", Config.parse({}, "getd"))


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize(("low", "high"), [(1, 64), (0.001, 0.1)])
def test_a_range_is_searched_between_its_ends_on_its_scale(
    low: float, high: float, log: bool
) -> None:
    drawn = distribution(Range(low=low, high=high, log=log))
    assert (drawn.low, drawn.high, drawn.log) == (low, high, log)
    assert isinstance(drawn.low, type(low))


def test_a_space_says_which_values_of_a_config_lie_in_it_and_what_is_logarithmic() -> None:
    rate = Range(low=0.001, high=0.1, log=True)
    dim = Range(low=4, high=8)
    norm = Choices(choices=("batch", "none"))
    dimensions = {"training.learning_rate": rate, "model.entity_dim": dim, "model.norm": norm}
    space = Space(dimensions)
    assert space.logarithmic == ["training.learning_rate"]
    assert space.tables()["model.norm"] == {"choices": ("batch", "none")}

    model = {"name": "n-cp", "entity_dim": 9, "norm": "none"}
    config = Config.parse({"model": model, "training": {"learning_rate": 0.1}})
    assert space.values_of(config) == {"training.learning_rate": 0.1, "model.norm": "none"}


def test_choices_are_searched_as_they_are() -> None:
    assert distribution(Choices(choices=(0.9, "a", True))).choices == (0.9, "a", True)

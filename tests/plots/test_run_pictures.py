"""The curves of a training show what was measured in each epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import getd
from getd.plots.run_pictures import learning_figure
from getd.runs.records import HistoryLine
from tests.plots.test_figures import lines
from tests.tiny import tiny_knowledge_base


def line(epoch: int, loss: float, **measured: Any) -> HistoryLine:
    return HistoryLine(epoch=epoch, loss=loss, seconds=1.0, **measured)


def test_losses_are_on_one_axis_and_the_mrr_on_another_with_its_best_marked() -> None:
    history = [
        line(1, 4.0, valid_mrr=0.25, valid_loss=5.0),
        line(2, 3.0),
        line(3, 2.0, valid_mrr=0.5, valid_loss=4.5),
        line(4, 1.0, valid_mrr=0.375, valid_loss=4.75),
    ]
    left, right = learning_figure("run", history).axes
    assert lines(left) == {
        "loss": ([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0]),
        "loss on validation": ([1, 3, 4], [5.0, 4.5, 4.75]),
    }
    assert lines(right) == {"MRR": ([1, 3, 4], [0.25, 0.5, 0.375]), "best": ([3], [0.5])}
    assert (left.get_title(), left.get_xlabel()) == ("run", "epoch")
    assert (left.get_ylabel(), right.get_ylabel()) == ("training loss", "validation MRR")


def test_a_curve_has_the_colour_of_its_axis_and_what_is_on_validation_is_dashed() -> None:
    history = [line(1, 4.0, valid_mrr=0.25, valid_loss=5.0), line(2, 3.0, valid_mrr=0.5)]
    left, right = learning_figure("run", history).axes
    for axis in (left, right):
        colour = axis.yaxis.label.get_color()
        assert [curve.get_color() for curve in axis.lines] == [colour, colour]
    assert left.yaxis.label.get_color() != right.yaxis.label.get_color()
    assert [curve.get_linestyle() for curve in left.lines] == ["-", "--"]


def test_what_was_not_measured_is_not_shown() -> None:
    (axis,) = learning_figure("run", [line(1, 4.0), line(2, 3.0)]).axes
    assert lines(axis) == {"loss": ([1, 2], [4.0, 3.0])}


@pytest.mark.usefixtures("rendered_pictures")
@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("run", {"epochs": 3}),
        ("one epoch", {"epochs": 1, "validation_loss": True}),
        ("nothing measured", {"epochs": 2, "validate_every": 5}),
        ("$a_b^{ & <c> % \\d", {"epochs": 2, "regime": "sampled", "validation_loss": True}),
    ],
)
def test_a_training_leaves_pictures_that_can_be_shown(
    name: str, training: dict[str, Any], tmp_path: Path
) -> None:
    config = {
        "model": {"entity_dim": 4, "ring_ranks": 2},
        "training": {"batch_size": 16, "threads": 1, **training},
    }
    run = getd.train(tiny_knowledge_base(), out=tmp_path / name, config=config)
    for picture in ("curves.svg", "calibration.svg"):
        drawing = ElementTree.parse(run.path / picture).getroot()
        assert drawing.tag.endswith("}svg")
        assert len(list(drawing.iter())) > 100

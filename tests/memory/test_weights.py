"""The file of a memory's weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from getd.errors import RunError
from getd.memory.weights import MemoryFile, MemoryWeights, SourceWeights

PATH = Path("memory.json")


def test_the_file_of_a_memory_comes_back_and_names_all_weights() -> None:
    used = MemoryWeights(scale=2.0, sources={"0": SourceWeights(share=1.0)})
    file = MemoryFile(weights={"2-0": used, "2-1": MemoryWeights()}, sample=None, fitted_to="x")
    assert file.as_dict() == {
        "weights": {
            "2-0": {"scale": 2.0, "sources": {"0": {"share": 1.0, "log_share": 0.0}}},
            "2-1": {"scale": 1.0, "sources": {}},
        },
        "sample": None,
        "fitted_to": "x",
    }
    assert MemoryFile.parse(json.loads(json.dumps(file.as_dict())), PATH) == file


@pytest.mark.parametrize("value", [{}, {"weights": 3}, {"weights": {"2-0": {"scal": 1}}}])
def test_a_file_without_weights_is_refused(value: object) -> None:
    message = r"^memory\.json: expected the weights of a memory, found others$"
    with pytest.raises(RunError, match=message):
        MemoryFile.parse(value, PATH)


def test_weights_are_in_the_order_of_the_sources() -> None:
    weights = MemoryWeights(sources={"b": SourceWeights(share=1.0, log_share=2.0)})
    assert weights.as_tensor(["a", "b"]).tolist() == [0.0, 0.0, 1.0, 2.0]


def test_arities_are_paired_if_two_given_entities_have_weights() -> None:
    one = MemoryWeights(sources={"frequency": SourceWeights(), "0": SourceWeights()})
    two = MemoryWeights(sources={"0": SourceWeights(), "0+2": SourceWeights()})
    three = MemoryWeights(sources={"0+1+2": SourceWeights()})
    assert MemoryFile(weights={"3-1": two, "2-0": one, "4-3": three}).paired == {"3"}

"""Facts are rectangular, and become tensors of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from getd.facts.facts import Facts


def test_facts_whose_parts_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^relation \(2,\) and entities \(1, 2\) do not fit together$"
    ):
        Facts(np.array([0, 1]), np.array([[1, 2]]))


def test_tensors_of_facts_are_copies_of_their_arrays() -> None:
    facts = Facts(np.array([0, 1]), np.array([[1, 2, 3], [4, 5, 6]]))
    relation, entities = facts.to_tensors()
    assert (relation.dtype, entities.dtype) == (torch.int64, torch.int64)
    assert relation.tolist() == [0, 1]
    assert entities.tolist() == [[1, 2, 3], [4, 5, 6]]
    entities[0, 0] = 9
    assert facts.entities[0, 0] == 1


def test_tensors_of_facts_are_on_the_device_that_is_named() -> None:
    facts = Facts(np.array([0]), np.array([[1, 2]]))
    assert [tensor.device.type for tensor in facts.to_tensors("meta")] == ["meta", "meta"]

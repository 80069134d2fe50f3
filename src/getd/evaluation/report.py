"""The JSON form of an evaluation."""

from __future__ import annotations

from typing import Any


def rename_floors(report: Any) -> Any:
    """Return a report or a result that says ``baselines`` where older versions wrote ``floors``.

    >>> rename_floors({"floors": {}, "by": {"arity": {"2": {"floors": {}}}}})
    {'baselines': {}, 'by': {'arity': {'2': {'baselines': {}}}}}
    """
    if not isinstance(report, dict):
        return report

    renamed = {"baselines" if key == "floors" else key: value for key, value in report.items()}
    for key, depth in (("by", 2), ("rows", 1)):
        if key in renamed:
            renamed[key] = _rename_below(renamed[key], depth)
    return renamed


def _rename_below(value: Any, depth: int) -> Any:
    if depth == 0 or not isinstance(value, dict):
        return rename_floors(value)
    return {key: _rename_below(below, depth - 1) for key, below in value.items()}

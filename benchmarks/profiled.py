"""What a training step does beside arithmetic, seen by ``torch.profiler``."""

from __future__ import annotations

from dataclasses import dataclass

from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.subjects import whole_step
from getd.training.loop import Trainer
from getd.training.regimes.base import Batch


@dataclass(frozen=True)
class ProfiledStep:
    """A step as the profiler saw it: its seconds, and shares of them that include preparation."""

    seconds: float
    python: float  # neither an operation runs nor a node of autograd's engine, which is C++
    no_operation: float  # no operation runs


def profiled_steps(trainer: Trainer, batches: list[Batch]) -> list[ProfiledStep]:
    """Some steps, each prepared and taken."""
    whole_step(trainer, batches[0])
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for batch in batches:
            with record_function("step"):
                with record_function("prepare"):
                    prepared = trainer.regime.prepare(batch)
                trainer.step(prepared)
    events = [(e.name, e.thread, e.time_range.start, e.time_range.end) for e in profiler.events()]
    steps = [(thread, start, stop) for name, thread, start, stop in events if name == "step"]
    assert len(steps) == len(batches)
    thread = steps[0][0]

    def spans(*kinds: str) -> list[tuple[float, float]]:
        return _union(
            [(a, b) for name, where, a, b in events if where == thread and name.startswith(kinds)]
        )

    operations, engine = spans("aten::"), spans("aten::", "autograd::engine::evaluate_function")
    preparing = spans("prepare")
    profiled = []
    for _, start, stop in steps:
        own = [(max(a, start), min(b, stop)) for a, b in preparing if a < stop and b > start]
        python, no_operation = (
            1
            - (_within(busy, start, stop) - sum(_within(busy, a, b) for a, b in own))
            / (stop - start)
            for busy in (engine, operations)
        )
        profiled.append(ProfiledStep(1e-6 * (stop - start), python, no_operation))
    return profiled


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Disjoint spans that cover the same time.

    >>> _union([(0, 2), (1, 3), (5, 6)])
    [(0, 3), (5, 6)]
    """
    merged: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _within(spans: list[tuple[float, float]], start: float, stop: float) -> float:
    """How much of the time between start and stop disjoint spans cover."""
    return sum(max(0.0, min(b, stop) - max(a, start)) for a, b in spans)

"""A run of a pipeline, watched, against its bounds."""

from __future__ import annotations

from avrt.drivers.simulate import simulate
from avrt.metrics.run import RunFigures
from avrt.model.events import Arrived
from avrt.report.bounds import check_bounds


def run(spec, *, cost=lambda _task, _index: None, feed=(), until_ns=400):
    """Run a pipeline; a cost of None is the wcet."""
    wcet_ns = {task: s.wcet_ns for s in spec.stages for task in s.task_names}
    figures = RunFigures(spec)
    simulation = simulate(
        spec,
        until_ns=until_ns,
        execution=lambda task, index: cost(task, index) or wcet_ns[task],
        feed=feed,
        watch=figures.watch,
    )
    for record in simulation.records:
        figures.add(record)
    return check_bounds(figures)


def arrivals(name, *times, first=1):
    """Arrivals at these times, or at `(arrival, capture)`."""
    pairs = [at if isinstance(at, tuple) else (at, at) for at in times]
    return [
        (at, Arrived(name, n, capture, at, -first - n)) for n, (at, capture) in enumerate(pairs)
    ]


def broken(check):
    """The kind, subject, index and time of what is told to be broken."""
    cause = check.assumption
    return None if cause is None else (cause.kind, cause.subject, cause.index, cause.at_ns)

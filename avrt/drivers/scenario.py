"""One run of a scenario: draws, arrivals and faults through the kernel in virtual time.

A scenario is prepared once: what it takes from recorded runs and logs is read then. After that
every run is a function of the seed alone, in this process or any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import merge
from math import ceil
from typing import TYPE_CHECKING

from avrt.drivers.arrivals import arrivals
from avrt.drivers.draws import Draws
from avrt.drivers.overheads import simulation_loop
from avrt.drivers.simulate import Pretended
from avrt.drivers.variants import VariantCosts
from avrt.logs.record.journal import Journal, all_of
from avrt.metrics.expectations import Firsts, Unmet, Windows, unmet
from avrt.metrics.run import RunFigures
from avrt.model.events import ORDERS, DeviceBack, DeviceLost, Ordered, StreamLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from avrt.logs.record.journal import Watch
    from avrt.model.commands import Command, Dispatch
    from avrt.model.events import Event
    from avrt.model.execution import DrawnModel
    from avrt.model.scenario import ScenarioSpec

    PreparedModel = DrawnModel | dict[str, DrawnModel]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario with everything that it takes from files.

    Attributes:
        models: by stage, and then by device where there is one for each.
        logged: by source whose arrivals come from a log, (arrival, capture) of each message.
        files: the runs and logs that were read.
    """

    spec: ScenarioSpec
    models: Mapping[str, PreparedModel]
    logged: Mapping[str, Sequence[tuple[int, int]]]
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """What one run showed.

    Attributes:
        unmet: the expectations that it did not meet.
    """

    figures: RunFigures
    decisions: str
    end_ns: int
    unmet: tuple[Unmet, ...]


def run_scenario(
    prepared: Prepared,
    seed: int,
    write: Callable[[int, str], None] | None = None,
    watch: Watch | None = None,
) -> ScenarioRun:
    """Run a scenario with a seed; `write` takes each journal entry, `watch` each call."""
    observed = _Observed(prepared.spec)
    journal = Journal(write, observed.listen, all_of(observed.figures.watch, watch))
    _run(prepared, seed, journal)
    return observed.run(journal.digest)


def run_unrecorded(prepared: Prepared, seed: int, *, watched: bool = False) -> ScenarioRun:
    """Run a scenario for its figures only, in two thirds of the time: no journal, no digest.

    What the run did not keep to is known of a `watched` one only, which takes a quarter longer.
    """
    observed = _Observed(prepared.spec)
    watch = observed.figures.watch if watched else None
    _run(prepared, seed, _Unwritten(listen=observed.listen, watch=watch))
    return observed.run("")


class _Observed:
    """Draws figures from the commands of a run."""

    def __init__(self, scenario: ScenarioSpec) -> None:
        self._expect = scenario.expect
        self.figures = RunFigures(scenario.pipeline, scenario.overheads)
        self._firsts = Firsts()
        self._windows = Windows(scenario.expect, self.figures.stages)
        self._has_windows = any(item.window is not None for item in scenario.expect)
        self._end_ns = 0

    def listen(self, at_ns: int, commands: Sequence[Command]) -> None:
        self._end_ns = at_ns
        for command in commands:
            self.figures.take(command)
            self._firsts.take(command)
            if self._has_windows:
                self._windows.take(command)

    def run(self, decisions: str) -> ScenarioRun:
        failed = tuple(unmet(self._expect, self.figures, self._firsts, self._windows))
        return ScenarioRun(self.figures, decisions, self._end_ns, failed)


class _Unwritten(Journal):
    """A journal that nobody reads: entries are passed on and not encoded."""

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> str:
        if self._listen is not None:
            self._listen(at_ns, commands)
        if self._watch is not None:
            self._watch(at_ns, events, commands)
        return ""


def _run(prepared: Prepared, seed: int, journal: Journal) -> None:
    scenario = prepared.spec
    pipeline = scenario.pipeline
    draws = Draws(seed)
    feed = merge(
        _resource_faults(scenario),
        arrivals(scenario, draws, prepared.logged),
        key=lambda item: item[0],
    )
    worker = Pretended(_execution(prepared, draws), scenario.overheads)
    simulation_loop(pipeline, feed, worker, journal, scenario.duration_ns).run()


def _execution(prepared: Prepared, draws: Draws) -> Callable[[Dispatch, int], int]:
    """Return what gives the execution time of a job by how and when it is dispatched."""
    scenario = prepared.spec
    models = {
        task: prepared.models[stage.name]
        for stage in scenario.pipeline.stages
        for task in stage.task_names
    }
    variants = VariantCosts(scenario.pipeline)
    slow = [fault for fault in scenario.faults if fault.kind == "slow_device"]

    def cost_ns(command: Dispatch, at_ns: int) -> int:
        model = models[command.task]
        if isinstance(model, dict):
            model = model[command.device]
        ns = model.cost_ns(draws.uniform(command.task, command.index), command.index)
        ns = variants.scaled_ns(ns, command.task, command.variant)
        for fault in slow:
            if fault.target == command.device and fault.covers(at_ns):
                ns = max(1, ceil(ns * fault.factor))
        return ns

    return cost_ns


def _resource_faults(scenario: ScenarioSpec) -> Iterator[tuple[int, Event]]:
    """Yield what is lost and what comes back, in time order."""
    for fault in sorted(scenario.faults, key=lambda fault: fault.at_ns):
        match fault.kind:
            case "device_lost":
                yield fault.at_ns, DeviceLost(fault.target)
            case "device_back":
                yield fault.at_ns, DeviceBack(fault.target)
            case "order":
                order = next(order for order in ORDERS if order == fault.target)
                yield fault.at_ns, Ordered(order)
            case "stream_lost":
                for task in scenario.pipeline.stage(fault.target).task_names:
                    yield fault.at_ns, StreamLost(task)
            case _:
                pass

"""When the messages of a scenario's sources come: captured, delayed, dropped, stamped.

A capture lies where its kind says. Its message arrives `delay` and a uniform part of `jitter`
later, and not before the message ahead of it: one link carries a source's messages in order, those
that are lost at its end included, so to drop one changes no other. While a source is out nothing is
captured; a stepped clock moves the stamps and not the messages.
"""

from __future__ import annotations

from heapq import merge
from itertools import count
from math import log1p
from typing import TYPE_CHECKING

from avrt.model.events import Arrived

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.drivers.draws import Draws
    from avrt.model.events import Event
    from avrt.model.scenario import ArrivalSpec, FaultSpec, ScenarioSpec

PARTS = 1_000_000_000


def arrivals(
    scenario: ScenarioSpec, draws: Draws, logged: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[tuple[int, Event]]:
    """Yield every arrival before the end in time order; buffer handles are negative.

    Args:
        scenario: says how they come, and which sources are out or have a stepped clock.
        draws: the run's random numbers.
        logged: by source with arrivals of kind log, (arrival, capture) of each message.
    """
    streams = (
        _of_source(order, item, scenario, draws, logged.get(item.source, ()))
        for order, item in enumerate(scenario.arrivals)
    )
    handles = count(-1, -1)
    for at_ns, order, sequence, capture_ns in merge(*streams):
        name = scenario.arrivals[order].source
        yield at_ns, Arrived(name, sequence, capture_ns, at_ns, next(handles))


def _of_source(
    order: int,
    item: ArrivalSpec,
    scenario: ScenarioSpec,
    draws: Draws,
    logged: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (arrival, order of the source, sequence, stamp) of what one source delivers."""
    faults = [fault for fault in scenario.faults if fault.target == item.source]
    out = [fault for fault in faults if fault.kind == "source_out"]
    steps = [fault for fault in faults if fault.kind == "clock_step"]
    newest_ns = sequence = 0
    for index, (ready_ns, capture_ns) in enumerate(_captures(item, draws, logged)):
        if ready_ns >= scenario.duration_ns:
            return
        late_ns = item.delay_ns + _jitter_ns(item, index, draws)
        newest_ns = max(newest_ns, ready_ns + late_ns)
        if _is_dropped(item, index, draws) or any(fault.covers(capture_ns) for fault in out):
            continue
        if newest_ns >= scenario.duration_ns:
            return
        yield newest_ns, order, sequence, capture_ns + _step_ns(steps, capture_ns)
        sequence += 1


def _captures(
    item: ArrivalSpec, draws: Draws, logged: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield (when the message is ready to be sent, when it was captured) without end."""
    match item.kind:
        case "log":
            yield from ((item.offset_ns + at, item.offset_ns + capture) for at, capture in logged)
        case "periodic":
            for index in count():
                at_ns = item.offset_ns + index * item.period_ns * (PARTS + item.drift_ppb) // PARTS
                yield at_ns, at_ns
        case "burst":
            for index in count():
                burst, place = divmod(index, item.size)
                at_ns = item.offset_ns + burst * item.period_ns + place * item.distance_ns
                yield at_ns, at_ns
        case "sporadic":
            at_ns = item.offset_ns
            for index in count():
                yield at_ns, at_ns
                share = draws.uniform(f"{item.source}/distance", index)
                beyond_ns = item.period_ns - item.distance_ns
                at_ns += item.distance_ns + round(-log1p(-share) * beyond_ns)


def _jitter_ns(item: ArrivalSpec, index: int, draws: Draws) -> int:
    if not item.jitter_ns:
        return 0
    return int(draws.uniform(f"{item.source}/jitter", index) * (item.jitter_ns + 1))


def _is_dropped(item: ArrivalSpec, index: int, draws: Draws) -> bool:
    if index in item.drop_indices:
        return True
    return item.drop_share > 0 and draws.uniform(f"{item.source}/drop", index) < item.drop_share


def _step_ns(steps: Iterable[FaultSpec], capture_ns: int) -> int:
    return sum(fault.step_ns for fault in steps if fault.covers(capture_ns))

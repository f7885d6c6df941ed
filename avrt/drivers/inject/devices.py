"""Devices that are lost and come back, as events beside those of the sources.

Two faults may take one device away at once: it is away while any of them says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.model.events import DeviceBack, DeviceLost
from avrt.units import NEVER_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.drivers.inject.applied import Applied
    from avrt.model.campaign import Injection
    from avrt.model.events import Event

    Span = tuple[int, int]


def device_events(
    faults: Sequence[Injection], end_ns: int, applied: Applied
) -> Iterator[tuple[int, Event]]:
    """Yield what is lost and back before the end of the drive, in time order."""
    own = [f for f in faults if f.place == "device" and f.kind in {"lost", "flap"}]
    changes: list[tuple[int, str, Event]] = []
    for device in dict.fromkeys(fault.target for fault in own):
        spans = [span for fault in own if fault.target == device for span in _away(fault)]
        for lost_ns, back_ns in _joined(spans):
            changes += [
                (lost_ns, device, DeviceLost(device)),
                (back_ns, device, DeviceBack(device)),
            ]
    for at_ns, device, event in sorted(changes, key=lambda change: change[:2]):
        if at_ns >= end_ns:
            return
        for fault in own:
            if fault.target == device and any(at_ns == lost_ns for lost_ns, _ in _away(fault)):
                applied.note(fault, at_ns)
        yield at_ns, event


def _away(fault: Injection) -> list[Span]:
    """Return from when to when a device is away."""
    assert fault.at_ns is not None
    if fault.kind == "lost":
        return [(fault.at_ns, NEVER_NS if fault.for_ns is None else fault.at_ns + fault.for_ns)]
    cycle_ns = fault.up_ns + fault.down_ns
    first_ns = fault.at_ns + fault.up_ns
    starts = (first_ns + number * cycle_ns for number in range(fault.count))
    return [(start_ns, start_ns + fault.down_ns) for start_ns in starts]


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return spans that neither overlap nor touch."""
    made: list[Span] = []
    for first_ns, last_ns in sorted(spans):
        if made and first_ns <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], last_ns)
        else:
            made.append((first_ns, last_ns))
    return made

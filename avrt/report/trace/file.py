"""A trace file in Perfetto's own format: tracks, slices, instants, counters and arrows.

The file is a protobuf message `perfetto.protos.Trace`; only the few fields that are needed here are
written, by hand: numbers as varints, everything else with its length before it. Against the other
format that Perfetto reads (Chrome's JSON): times are whole ns there only as text, tracks must
pretend to be threads of processes, and an arrow needs a slice that is open at its time. The same
calls give the same bytes.

Protocol: perfetto/protos/perfetto/trace/track_event (TrackDescriptor, TrackEvent,
DebugAnnotation), at v52.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Value = int | str | bool | None | list["Args"]
Args = dict[str, Value]
Unit = Literal["ns", "count", "bytes"]

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
AS_DECLARED = 3  # TrackDescriptor.ChildTracksOrdering.EXPLICIT
UNITS: Mapping[Unit, int] = {"ns": 1, "count": 2, "bytes": 3}
SEQUENCE = 1  # all packets are one writer's
STATE_CLEARED = 1  # SEQ_INCREMENTAL_STATE_CLEARED: nothing was written before
MASK = (1 << 64) - 1


class TraceFile:
    """A trace while it is put together; `data` gives the bytes.

    Tracks are numbered from 1 and shown in the order in which they were added. Times are ns.
    """

    def __init__(self) -> None:
        self._tracks: list[bytes] = []
        self._events: list[tuple[int, int, int, bytes]] = []

    def add_track(self, name: str, parent: int = 0, unit: Unit | None = None) -> int:
        """Add a track below another one and return its number; with a unit it is a counter."""
        number = len(self._tracks) + 1
        body = _int(1, number) + _text(2, name) + _int(11, AS_DECLARED) + _int(12, number)
        if parent:
            body += _int(5, parent)
        if unit is not None:
            body += _nested(8, _int(3, UNITS[unit]))
        self._tracks.append(_nested(60, body))
        return number

    def add_slice(
        self,
        track: int,
        name: str,
        span_ns: tuple[int, int],
        *,
        category: str,
        args: Args,
        flows: Sequence[int] = (),
    ) -> None:
        """Add what lasted from one time to another; slices of one track nest and do not cross."""
        start_ns, end_ns = span_ns
        begin = _event(BEGIN, track, name, category, args, flows)
        self._put(start_ns, 2, begin)
        self._put(end_ns, 0 if end_ns > start_ns else 2, _int(9, END) + _int(11, track))

    def add_instant(
        self,
        track: int,
        name: str,
        at_ns: int,
        *,
        category: str,
        args: Args,
        flows: Sequence[int] = (),
    ) -> None:
        """Add what happened at one time. Slices with a flow in common are joined by an arrow."""
        self._put(at_ns, 1, _event(INSTANT, track, name, category, args, flows))

    def add_count(self, track: int, at_ns: int, value: float) -> None:
        """Add a value of a counter, which holds until the next one."""
        told = _int(30, value) if isinstance(value, int) else _real(44, value)
        self._put(at_ns, 1, _int(9, COUNTER) + _int(11, track) + told)

    def data(self) -> bytes:
        """Return the whole file; of one instant, what ends comes first and what begins last."""
        head = _int(13, STATE_CLEARED)
        packets = [head, *self._tracks]
        packets += [_int(8, at_ns) + event for at_ns, _, _, event in sorted(self._events)]
        return b"".join(_nested(1, packet + _int(10, SEQUENCE)) for packet in packets)

    def _put(self, at_ns: int, rank: int, event: bytes) -> None:
        self._events.append((at_ns, rank, len(self._events), _nested(11, event)))


def _event(
    kind: int, track: int, name: str, category: str, args: Args, flows: Sequence[int]
) -> bytes:
    parts = [_int(9, kind), _int(11, track), _text(22, category), _text(23, name)]
    parts += [_nested(4, _text(10, key) + _value(value)) for key, value in args.items()]
    parts += [_tag(47, 1) + flow.to_bytes(8, "little") for flow in flows]
    return b"".join(parts)


def _value(value: Value) -> bytes:
    """Return the value of a DebugAnnotation; nothing is text, which no number is."""
    if isinstance(value, bool):
        return _int(2, value)
    if isinstance(value, int):
        return _int(4, value)
    if isinstance(value, list):
        return b"".join(_nested(12, _members(item)) for item in value)
    return _text(6, "none" if value is None else value)


def _members(args: Args) -> bytes:
    return b"".join(_nested(11, _text(10, key) + _value(value)) for key, value in args.items())


def _int(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value & MASK)


def _real(field: int, value: float) -> bytes:
    return _tag(field, 1) + struct.pack("<d", value)


def _text(field: int, value: str) -> bytes:
    return _nested(field, value.encode())


def _nested(field: int, body: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(body)) + body


def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)

"""A trace file read back: a protobuf reader of twenty lines, written apart from the writer."""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass, field

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def message(data):
    """Return the fields of a protobuf message: by number, every value in order."""
    fields, at = defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            fields[number].append(varint())
            continue
        size = {1: lambda: 8, 2: varint}[wire]()
        fields[number].append(data[at : at + size])
        at += size
    assert at == len(data)
    return fields


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def counted(event):
    """Return the value of a counter, a whole number or a real one."""
    return signed(event[30][0]) if 30 in event else struct.unpack("<d", event[44][0])[0]


def value_of(annotation):
    for number, read in ((4, signed), (6, bytes.decode), (2, bool)):
        if number in annotation:
            return read(annotation[number][0])
    return [members(message(item)[11]) for item in annotation[12]]


def members(items):
    found = [message(item) for item in items]
    return {item[10][0].decode(): value_of(item) for item in found}


@dataclass
class Slice:
    track: str
    name: str
    category: str
    start_ns: int
    args: dict
    flows: list
    end_ns: int | None = None


@dataclass
class ReadTrace:
    """Tracks are named by their path, `device cpu/detect`."""

    tracks: dict = field(default_factory=dict)
    slices: list = field(default_factory=list)
    counts: dict = field(default_factory=lambda: defaultdict(list))

    def of(self, category):
        return [item for item in self.slices if item.category == category]

    @property
    def jobs(self):
        """The slices that are jobs, by the kernel's number; each must be there once."""
        found = {item.args["job"]: item for item in self.of("job")}
        assert len(found) == len(self.of("job"))
        return found

    def arrows(self):
        """Pairs of slices that a flow joins."""
        by_flow = defaultdict(list)
        for item in self.slices:
            for flow in item.flows:
                by_flow[flow].append(item)
        assert all(len(ends) == 2 for ends in by_flow.values())
        return sorted(by_flow.values(), key=lambda ends: (ends[0].start_ns, ends[1].start_ns))


def read_trace(data):
    """Return what a trace file shows; slices of a track must nest, times must not go back."""
    found, open_slices, now_ns = ReadTrace(), defaultdict(list), 0
    for packet in map(message, message(data)[1]):
        assert packet[10] == [1]
        for track in map(message, packet[60]):
            parent = found.tracks[track[5][0]] + "/" if 5 in track else ""
            found.tracks[track[1][0]] = parent + track[2][0].decode()
        for event in map(message, packet[11]):
            assert packet[8][0] >= now_ns
            now_ns = packet[8][0]
            track = found.tracks[event[11][0]]
            kind = event[9][0]
            if kind == COUNTER:
                found.counts[track].append((now_ns, counted(event)))
            elif kind == END:
                open_slices[track].pop().end_ns = now_ns
            else:
                name, category = event[23][0].decode(), event[22][0].decode()
                flows = [int.from_bytes(flow, "little") for flow in event[47]]
                item = Slice(track, name, category, now_ns, members(event[4]), flows)
                found.slices.append(item)
                if kind == BEGIN:
                    above = [other.category for other in open_slices[track]]
                    assert above in ([], ["job"], ["piece"]), (item, above)
                    assert bool(above) == (category == "device"), (item, above)
                    open_slices[track].append(item)
                else:
                    item.end_ns = now_ns
    assert not any(open_slices.values())
    return found

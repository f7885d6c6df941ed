"""The header of a ROS message (stamp and frame), read without the message around it.

Messages of most types begin with a std_msgs/Header: CDR's four bytes (the second is odd for little
endian), seconds (int32), nanoseconds (uint32), then the frame as a string with its length.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rosbags.interfaces import Nodetype

from avrt.errors import InputError
from avrt.logs.decode import is_stamp
from avrt.logs.ros.types import HEADER, PACKETS, types_of
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from avrt.logs.raw import Channel, RawMessage

LITTLE, BIG = struct.Struct("<iII"), struct.Struct(">iII")
START = 4
FRAME_BYTES_MAX = 256


class Stamp(NamedTuple):
    """A header: `ns` by the sensor's clock, None where it can be no time; the frame's name."""

    ns: int | None
    frame: str


def read_stamp(raw: RawMessage) -> Stamp | None:
    """Return the header of a message, or None when it has none that can be read."""
    if not has_header(raw.channel):
        return None
    data = raw.data
    if len(data) < START + LITTLE.size:
        return None
    layout = LITTLE if data[1] & 1 else BIG
    sec, nanosec, length = layout.unpack_from(data, START)
    start = START + layout.size
    frame = bytes(data[start : start + min(length, FRAME_BYTES_MAX)]).rstrip(b"\0")
    ns = sec * NS_PER_S + nanosec if is_stamp(sec, nanosec) else None
    return Stamp(ns, frame.decode("utf-8", "replace").removeprefix("/"))


@lru_cache(maxsize=1024)
def has_header(channel: Channel) -> bool:
    """Whether messages of a channel begin with a header, as far as their type is known."""
    if channel.encoding != "cdr":
        return False
    if channel.type == HEADER:
        return True
    if channel.type.rpartition("/")[2] in PACKETS:
        return True  # no definition is in most logs of them; all begin with one
    try:
        fields = types_of(channel).fielddefs[channel.type][1]
    except (InputError, KeyError):
        return False
    return bool(fields) and fields[0][1] == (Nodetype.NAME, HEADER)

"""MCAP logs. Channels of ROS 1, which a converted bag has, become channels of ROS 2 (`ros1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcap.opcode import Opcode

from avrt.errors import InputError
from avrt.logs.extents import Extent, ExtentReader, File
from avrt.logs.mcap.file import MESSAGE, Layout, read_extent, read_index
from avrt.logs.mcap.layout import find_layout
from avrt.logs.mcap.runs import runs_told_apart
from avrt.logs.raw import NODE, Channel, RawMessage, writers_told_apart
from avrt.logs.ros.ros1 import ROS1, Ros1Converter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray


class McapReader(ExtentReader):
    """One open MCAP file."""

    format = "MCAP"

    def __init__(self, file: File, *, strict: bool = False) -> None:
        self._layout = find_layout(file)
        self._layout.extents = runs_told_apart(file, self._layout)
        self._ros1 = Ros1Converter()
        found = self._layout.channels
        nodes = {id_: channel.metadata.get(NODE, "") for id_, channel in found.items()}
        channels = writers_told_apart(
            (_channel(self._layout, self._ros1, id_) for id_ in found), nodes
        )
        super().__init__(file, list(channels), self._layout.counts, strict=strict)
        for error in self._layout.damage:
            self.note_damage(error)
        self.tell_runs()

    def extents(self, channels: frozenset[int] | None = None) -> list[Extent]:
        return self._layout.extents if channels is None else self._layout.extents_of(channels)

    def index_of(self, extent: Extent) -> Iterator[tuple[int, NDArray[np.int64]]]:
        return read_index(self._file, extent)

    def open_extent(
        self, extent: Extent, wanted: Mapping[int, Channel]
    ) -> Iterator[tuple[int, RawMessage]]:
        content = read_extent(self._file, extent)
        if content.fault is not None:
            raise content.fault
        data = content.data
        for opcode, start, end in content.records():
            if opcode != Opcode.MESSAGE:
                continue
            id_, sequence, log_ns, publish_ns = MESSAGE.unpack_from(data, start)
            channel = wanted.get(id_)
            if channel is not None:
                payload = data[start + MESSAGE.size : end]
                message = RawMessage(channel, log_ns, publish_ns, sequence, payload)
                self._ros1.convert(message, self._anomalies)
                yield start, message
            elif id_ not in self._channels:
                what = f"expected a message of a known channel, found channel {id_}"
                self.note_damage(InputError(what, content.place), log_ns)


def _channel(layout: Layout, ros1: Ros1Converter, id_: int) -> Channel:
    channel = layout.channels[id_]
    schema = layout.schemas.get(channel.schema_id)
    if schema is None:
        return Channel(id_, channel.topic, "", channel.message_encoding)
    if (channel.message_encoding, schema.encoding) == (ROS1, "ros1msg"):
        return ros1.channel(id_, channel.topic, schema.name, schema.data)
    return Channel(
        id_, channel.topic, schema.name, channel.message_encoding, schema.encoding, schema.data
    )

"""Writes an ordinary sensor log: MCAP with ROS 2 messages, as a recorder on a vehicle would.

Used by the built-in demonstration log and by tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from mcap.writer import CompressionType, Writer

from avrt.errors import SpecError
from avrt.logs.encode import Encoder
from avrt.logs.ros.types import schema_text

if TYPE_CHECKING:
    from collections.abc import Mapping

CHUNK_BYTES = 1 << 20


class LogWriter(Encoder):
    """One sensor log while it is written."""

    def __init__(
        self,
        path: str | Path,
        *,
        compression: CompressionType = CompressionType.ZSTD,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        """Create the file.

        Raises:
            SpecError: it cannot be created.
        """
        try:
            self._file = Path(path).open("wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise SpecError(f"cannot create the log {path}: {error.strerror}") from None
        super().__init__()
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._writer = Writer(self._file, chunk_size=chunk_bytes, compression=compression)
        self._writer.start(profile="ros2", library="avrt")

    def add_raw(
        self, topic: str, type_name: str, log_ns: int, data: bytes, *, encoding: str = "cdr"
    ) -> None:
        """Add bytes as they are, under a type of ROS 2 that `rosbags` knows."""
        channel = self._channels.get(topic)
        if channel is None:
            channel = self._register(topic, type_name, encoding)
        sequence = self._counts.get(topic, 0)
        self._counts[topic] = sequence + 1
        self._writer.add_message(channel, log_ns, data, log_ns, sequence)

    def add_metadata(self, name: str, items: Mapping[str, str]) -> None:
        self._writer.add_metadata(name, dict(items))

    def close(self) -> None:
        """Finish the file; harmless when repeated."""
        if self._file.closed:
            return
        try:
            self._writer.finish()  # type: ignore[no-untyped-call]
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _register(self, topic: str, type_name: str, encoding: str) -> int:
        if type_name not in self._schemas:
            text = schema_text(self._store, type_name)
            self._schemas[type_name] = self._writer.register_schema(type_name, "ros2msg", text)
        channel = self._writer.register_channel(topic, encoding, self._schemas[type_name])
        self._channels[topic] = channel
        return channel

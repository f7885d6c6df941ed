"""The run record: one MCAP file with everything that happened, readable however the run ended.

* Conditions and pipeline are on disk before the first message; the result follows at `close`.
* Chunks are uncompressed with a CRC and small (`CHUNK_BYTES`), bulk messages have chunks of their
  own, and `ENTRIES_MAX` journal entries, or those of a second, wait in memory: a killed process
  loses little, a damaged byte harms little, and the reader knows what. More chunks would cost: the
  index of an MCAP lies in memory until the file is closed.
* Sensor messages keep their bytes and their schema. Outputs are recorded twice: as a picture that
  Foxglove shows (`/avrt/view/STAGE`) and with all their numbers (`/avrt/output/STAGE`).
* JSON topics have no schema, and the profile is ros2: so Foxglove, rosbags and ROS 2 all open it.
* Message times are absolute, in the log's clock: `zero_ns` plus pipeline ns.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from mcap.writer import CompressionType, Writer

from avrt.errors import SpecError
from avrt.logs.raw import NODE, Channel
from avrt.logs.record.payload_json import to_json
from avrt.logs.record.picture import Painter
from avrt.logs.ros.types import schema_text
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.logs.raw import RawMessage
    from avrt.model.message import Message

CHUNK_BYTES = 256 * 1024
BULK_BYTES = 64 * 1024
ENTRIES_MAX = 64
WAIT_NS_MAX = NS_PER_S
FORMAT = "1"
JOURNAL = "/avrt/journal"
EXECUTION = "/avrt/execution"
RESOURCES = "/avrt/resources"
SENSORS = "/avrt/sensors"
FLAWS = "/avrt/flaws"
OUTPUT = "/avrt/output/"
VIEW = "/avrt/view/"
CONDITIONS, RESULT, RECOVERED = "avrt.conditions", "avrt.result", "avrt.recovered"
PIPELINE_JSON, PIPELINE_YAML = "avrt.pipeline.json", "avrt.pipeline.yaml"
FRAME = "vehicle"
NO_FORM = "it has no form in JSON"


class LeftOut(dict[str, tuple[int, str]]):
    """By stage or source, how many messages are not in a record and why the first is not."""

    def add(self, name: str, why: str) -> None:
        known, first = self.get(name, (0, why))
        self[name] = (known + 1, first)


class Record(Protocol):
    """What takes a run while it goes on; see `RunRecord` for what each call means."""

    def input(self, topic: str, raw: RawMessage) -> None: ...
    def output(self, stage: str, message: Message[object]) -> bool: ...
    def journal(self, entry: str, at_ns: int) -> None: ...
    def note(self, topic: str, item: object, at_ns: int) -> None: ...


class RunRecord:
    """The record of one run while it is written."""

    def __init__(
        self,
        path: str | Path,
        *,
        zero_ns: int,
        conditions: Mapping[str, str],
        pipeline_json: str,
        pipeline_yaml: str | None = None,
    ) -> None:
        """Create the file, and put on disk what is known before the run.

        `zero_ns` is pipeline time zero in the log's clock; `pipeline_yaml` is the pipeline file as
        it was written, where there was one.

        Raises:
            SpecError: the file cannot be created.
        """
        try:
            self._file = Path(path).open("wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise SpecError(f"cannot create the run record {path}: {error.strerror}") from None
        self.path = Path(path)
        self.zero_ns = zero_ns
        self._painter = Painter()
        self._channels: dict[str, int] = {}
        self._inputs: dict[tuple[str, str, bytes, str], int] = {}
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._counts: dict[str, int] = {}
        self._waiting = 0
        self._flushed_ns = 0
        self._writer = Writer(
            self._file,
            chunk_size=CHUNK_BYTES,
            compression=CompressionType.NONE,
            enable_data_crcs=True,
        )
        with ExitStack() as undo:
            undo.callback(self._file.close)
            self._writer.start(profile="ros2", library="avrt")
            self._writer.add_metadata(CONDITIONS, dict(conditions))
            self._attach(PIPELINE_JSON, "application/json", pipeline_json)
            if pipeline_yaml is not None:
                self._attach(PIPELINE_YAML, "application/yaml", pipeline_yaml)
            self.flush()
            undo.pop_all()

    def input(self, topic: str, raw: RawMessage) -> None:
        """Record a sensor message as it came, at its own log time."""
        key = (topic, raw.type, raw.channel.schema, raw.channel.writer)
        channel = self._inputs.get(key)
        if channel is None:
            channel = self._inputs[key] = self._register(topic, raw.channel)
        self._add(channel, raw.log_ns, raw.data, publish_ns=raw.publish_ns, sequence=raw.sequence)

    def output(self, stage: str, message: Message[object]) -> bool:
        """Record what a stage published, at the time consumers could read it.

        Returns False for a payload that is neither plain data, array nor dataclass: it has no form
        in the record.
        """
        stamp = message.stamp
        at_ns = self.zero_ns + stamp.publish_ns
        frame = stamp.frame or FRAME
        picture = self._painter.paint(
            stage, message.payload, self.zero_ns + stamp.capture_ns, frame
        )
        if picture is not None:
            self._add(self._ros_channel(VIEW + stage, picture.type), at_ns, picture.data)
        try:
            text = to_json(message)
        except TypeError:
            return False
        self._add_json(OUTPUT + stage, text, at_ns)
        return True

    def output_text(self, stage: str, text: str, publish_ns: int) -> None:
        """Record an output whose JSON was made elsewhere; it has no picture."""
        self._add_json(OUTPUT + stage, text, self.zero_ns + publish_ns)

    def journal(self, entry: str, at_ns: int) -> None:
        """Record one journal entry, a JSON object; `at_ns` is pipeline ns."""
        self._add_json(JOURNAL, entry, self.zero_ns + at_ns)
        self._waiting += 1
        if self._waiting >= ENTRIES_MAX and at_ns - self._flushed_ns >= WAIT_NS_MAX:
            self._flushed_ns = at_ns
            self.flush()

    def note(self, topic: str, item: object, at_ns: int) -> None:
        """Record any plain data, array or dataclass as JSON; `at_ns` is pipeline ns.

        Raises:
            TypeError: the item is none of these.
        """
        self._add_json(topic, to_json(item), self.zero_ns + at_ns)

    def flush(self) -> None:
        """Hand everything recorded so far to the operating system."""
        self._writer.flush()  # type: ignore[no-untyped-call]
        self._waiting = 0

    def close(
        self,
        result: Mapping[str, str] | None = None,
        conditions: Mapping[str, str] | None = None,
    ) -> None:
        """Finish the file; harmless when repeated.

        Args:
            result: of a run that ended.
            conditions: all of them, where the run itself showed some that were not known before.
        """
        if self._file.closed:
            return
        try:
            self.flush()  # a file that ends behind the result has everything before it
            if conditions is not None:
                self._writer.add_metadata(CONDITIONS, dict(conditions))
            if result is not None:
                self._writer.add_metadata(RESULT, dict(result))
            self._writer.finish()  # type: ignore[no-untyped-call]
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _attach(self, name: str, media_type: str, text: str) -> None:
        self._writer.add_attachment(
            create_time=0,
            log_time=max(0, self.zero_ns),
            name=name,
            media_type=media_type,
            data=text.encode(),
        )

    def _add(
        self,
        channel: int,
        log_ns: int,
        data: bytes | memoryview,
        *,
        publish_ns: int | None = None,
        sequence: int = 0,
    ) -> None:
        if len(data) >= BULK_BYTES:
            self.flush()
        at_ns = log_ns if publish_ns is None else publish_ns
        self._writer.add_message(channel, log_ns, data, at_ns, sequence)  # type: ignore[arg-type]
        if len(data) >= BULK_BYTES:
            self.flush()

    def _add_json(self, topic: str, text: str, log_ns: int) -> None:
        channel = self._channels.get(topic)
        if channel is None:
            channel = self._channels[topic] = self._register(topic, Channel(0, topic, "", "json"))
        sequence = self._counts.get(topic, 0)
        self._counts[topic] = sequence + 1
        self._add(channel, log_ns, text.encode(), sequence=sequence & 0xFFFFFFFF)

    def _ros_channel(self, topic: str, type_name: str) -> int:
        channel = self._channels.get(topic)
        if channel is None:
            text = schema_text(self._painter.store, type_name)
            kind = Channel(0, topic, type_name, "cdr", "ros2msg", text)
            channel = self._channels[topic] = self._register(topic, kind)
        return channel

    def _register(self, topic: str, kind: Channel) -> int:
        schema = 0
        if kind.type:
            key = (kind.type, kind.schema)
            if key not in self._schemas:
                self._schemas[key] = self._writer.register_schema(
                    kind.type, kind.schema_encoding, kind.schema
                )
            schema = self._schemas[key]
        metadata = {"avrt.format": FORMAT, "avrt.zero_ns": str(self.zero_ns)}
        if kind.writer:
            metadata[NODE] = kind.writer
        return self._writer.register_channel(topic, kind.encoding, schema, metadata)

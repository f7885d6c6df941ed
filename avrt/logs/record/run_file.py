"""A run record read back, damage included.

Whatever byte of the file is wrong or missing, what can be read is read: an entry out of a chunk
whose CRC is wrong comes flagged, and `damage` says what was found where. Nothing is skipped in
silence, and nothing but `InputError` is raised.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Attachment, DataEnd, Metadata

from avrt.errors import InputError, SpecError, did_you_mean
from avrt.logs.extents import File
from avrt.logs.mcap.file import HEAD, MAGIC, MESSAGE, PARSE_ERRORS, read_extent
from avrt.logs.mcap.layout import walk_layout
from avrt.logs.record.payload_json import from_json
from avrt.logs.record.run_record import (
    CONDITIONS,
    FORMAT,
    JOURNAL,
    OUTPUT,
    PIPELINE_JSON,
    PIPELINE_YAML,
    RECOVERED,
    RESULT,
)
from avrt.model import codec
from avrt.model.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from avrt.logs.extents import Extent
    from avrt.logs.mcap.file import Record

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON message of a record.

    Attributes:
        index: counts the messages of its topic from 0, as they were written.
        at_ns: when it was recorded, pipeline ns.
        damaged: a CRC over it is wrong, so it may not be what was written.
    """

    index: int
    at_ns: int
    text: str
    damaged: bool


class RunFile:
    """One run record, opened for reading."""

    def __init__(self, path: str | Path) -> None:
        """Open a record and read what does not belong to a point in time.

        Raises:
            InputError: it cannot be opened, or is no run record.
        """
        self._file = File(Path(path))
        self.conditions: Mapping[str, str] = {}
        self.result: Mapping[str, str] | None = None
        self.pipeline_json: str | None = None
        self.pipeline_yaml: str | None = None
        self.zero_ns = 0
        self._is_recovered = False
        magic = self._file.read_at(0, len(MAGIC))
        if magic != MAGIC:
            self.close()
            raise InputError(f"expected a run record (magic {MAGIC!r}), found {magic!r}", str(path))
        self._layout = walk_layout(self._file)
        self._damage = {error.place: error for error in self._layout.damage}
        self._channels = {c.topic: c for c in self._layout.channels.values()}
        for extra in self._layout.extras:
            self._read_extra(extra)
        self._check_data()
        if not self.conditions and self.pipeline_json is None and JOURNAL not in self._channels:
            self.close()
            raise InputError("expected a run record of avrt, found another MCAP file", str(path))
        self._read_format()

    @property
    def complete(self) -> bool:
        """Whether the record was closed properly; a killed run's was not."""
        return self._layout.data_end is not None and not self._is_recovered

    @property
    def damage(self) -> list[InputError]:
        """What is wrong with the file, as far as it has been read."""
        return list(self._damage.values())

    def topics(self) -> dict[str, int]:
        """Return every topic and how many messages the file promises on it."""
        counts = self._layout.counts
        return {topic: counts.get(c.id, 0) for topic, c in self._channels.items()}

    def journal(self) -> Iterator[Line]:
        """Yield the journal's entries in the order they were written."""
        return self.lines(JOURNAL)

    def lines(self, topic: str) -> Iterator[Line]:
        """Yield the messages of a JSON topic (if it is there) in the order they were written."""
        channel = self._channels.get(topic)
        if channel is None:
            return
        index = 0
        for extent in self._layout.extents_of({channel.id}):
            for sequence, at_ns, data, damaged in self._messages(extent, channel.id):
                text = data.decode("utf-8", "replace")
                index = index if damaged else max(index, sequence)
                yield Line(index, at_ns, text, damaged or "\ufffd" in text)
                index += 1

    def outputs(self, stage: str) -> Iterator[Message[object]]:
        """Yield what a stage published; bulk arrays (points, pixels) are NaN or zero.

        Raises:
            InputError: an output is damaged.
        """
        for line in self.lines(OUTPUT + stage):
            place = f"{self._file.path}, output {line.index} of {stage}"
            try:
                message = from_json(line.text)
            except ValueError as error:
                raise InputError(str(error), place, line.index) from None
            if line.damaged or not isinstance(message, Message):
                raise InputError(
                    "expected an undamaged output, found a wrong CRC", place, line.index
                )
            yield message

    def stages(self) -> list[str]:
        """Return the stages whose outputs are in the record."""
        return [t.removeprefix(OUTPUT) for t in self._channels if t.startswith(OUTPUT)]

    def declared_stages(self) -> list[str]:
        """Return the stages of the pipeline that ran; none when the record does not tell."""
        try:
            spec = codec.decode_pipeline(codec.from_json(self.pipeline_json or ""))
        except ValueError:
            return []
        return [stage.name for stage in spec.stages]

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _messages(self, extent: Extent, channel: int) -> Iterator[tuple[int, int, bytes, bool]]:
        """Yield (sequence, pipeline ns, data, damaged) of one channel's messages in an extent."""
        try:
            content = read_extent(self._file, extent)
            if content.fault is not None:
                self._note(content.fault)
            damaged = content.fault is not None
            for opcode, start, end in content.records():
                if opcode != Opcode.MESSAGE:
                    continue
                id_, sequence, log_ns, _ = MESSAGE.unpack_from(content.data, start)
                if id_ == channel:
                    data = bytes(content.data[start + MESSAGE.size : end])
                    yield sequence, log_ns - self.zero_ns, data, damaged
        except InputError as error:
            self._note(error)

    def _note(self, error: InputError) -> None:
        self._damage.setdefault(error.place, error)

    def _read_extra(self, extra: Record) -> None:
        body = self._file.read_at(extra.start, extra.end - extra.start)
        place = self._file.place(extra.start)
        stream = ReadDataStream(BytesIO(body))
        try:
            if extra.opcode == Opcode.METADATA:
                metadata = Metadata.read(stream)
                if metadata.name == CONDITIONS:
                    self.conditions = metadata.metadata
                elif metadata.name == RESULT:
                    self.result = metadata.metadata
                elif metadata.name == RECOVERED:
                    self._is_recovered = True
                return
            attachment = Attachment.read(stream)
            text = attachment.data.decode()
        except PARSE_ERRORS as error:
            self._note(InputError(f"expected metadata or an attachment: {error}", place))
            return
        found = zlib.crc32(body[:-4])
        if int.from_bytes(body[-4:], "little") != found:
            self._note(InputError(f"attachment {attachment.name!r} has a wrong CRC", place))
        if attachment.name == PIPELINE_JSON:
            self.pipeline_json = text
        elif attachment.name == PIPELINE_YAML:
            self.pipeline_yaml = text

    def _check_data(self) -> None:
        """Compare the whole data section with the CRC that a complete file has of it."""
        end = self._layout.data_end
        if end is None:
            return
        try:
            body = self._file.read_at(end + HEAD.size, 4)
            expected = DataEnd.read(ReadDataStream(BytesIO(body))).data_section_crc
        except PARSE_ERRORS:
            return
        if not expected:  # the writer counted none
            return
        found = 0
        for offset in range(0, end, BLOCK_BYTES):
            found = zlib.crc32(self._file.read_at(offset, min(BLOCK_BYTES, end - offset)), found)
        self._layout.checked = found == expected
        if not self._layout.checked:
            what = f"expected data with CRC {expected:#010x}, found {found:#010x}"
            self._note(InputError(what, str(self._file.path)))

    def _read_format(self) -> None:
        for channel in self._layout.channels.values():
            text = channel.metadata.get("avrt.zero_ns", "")
            written = channel.metadata.get("avrt.format", FORMAT)
            if written != FORMAT:
                self.close()
                what = f"expected a run record of format {FORMAT}, found format {written!r}"
                raise InputError(
                    f"{what}; read it with the avrt that wrote it", str(self._file.path)
                )
            if text.lstrip("-").isdecimal():
                self.zero_ns = int(text)
                return


def read_outputs(path: str | Path, stage: str) -> list[Message[object]]:
    """Return everything a stage published in a run, with its numbers as they were.

    Payload classes of avrt come back as themselves, a dataclass of yours as the mapping of its
    fields, tuples for lists; bulk arrays (points, pixels) are not kept.

    Raises:
        SpecError: the run's pipeline has no such stage.
        InputError: the record, or one of these outputs, is damaged.
    """
    with RunFile(path) as run:
        declared = run.declared_stages()
        if declared and stage not in declared:
            raise SpecError(f"the run has no stage {stage!r}; {did_you_mean(stage, declared)}")
        return list(run.outputs(stage))

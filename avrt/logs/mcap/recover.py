"""A whole MCAP file of what is good in a damaged one: of a run record, or of any log.

Records are copied in the order of the file: schemas and channels with what they say, messages of
every chunk whose check sum holds, those of a cut chunk that are whole, attachments and metadata.
The copy gets an index and a summary of its own, so every tool opens it; metadata of the name
`RECOVERED` says what it was made from and what was lost. Messages of a channel that the file does
not define, and chunks with a wrong check sum, are lost and told.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Attachment, Header, Metadata
from mcap.writer import CompressionType, Writer

from avrt.errors import InputError, SpecError
from avrt.logs.extents import Extent, File
from avrt.logs.mcap.file import CHUNK, HEAD, MAGIC, MESSAGE, PARSE_ERRORS, read_extent
from avrt.logs.mcap.layout import walk_layout
from avrt.logs.record.run_record import RECOVERED
from avrt.model.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from avrt.logs.mcap.file import Layout, Record

COMPRESSIONS = {b"": CompressionType.NONE, b"lz4": CompressionType.LZ4}
HEADER_BYTES_MAX = 1 << 16


@dataclass(slots=True)
class Recovered:
    """What became of a file.

    Attributes:
        messages: how many are in the copy.
        last_ns: the latest log time among them, None of none.
        lost: how many more the file promised.
        damage: what was wrong with it; empty of a file that was whole.
    """

    messages: int
    last_ns: int | None
    lost: int
    damage: list[InputError]


def recover(path: Path, out: Path) -> Recovered:
    """Copy what is good in an MCAP file into a new one.

    Raises:
        SpecError: there is a file at `out` already, or it cannot be created or written.
        InputError: `path` is no MCAP file, or nothing in it is good.
    """
    file = File(path)
    try:
        magic = file.read_at(0, len(MAGIC))
        if magic != MAGIC:
            found = repr(magic) if magic else "an empty file"
            raise InputError(f"expected an MCAP file, found {found}", str(path))
        copy = _Copy(file, walk_layout(file))
        if copy.damage and not copy.has_something():
            raise copy.damage[0]
        with _created(out) as target:
            writer = Writer(target, compression=copy.compression(), enable_data_crcs=True)
            return copy.write(writer)
    finally:
        file.close()


@contextmanager
def _created(out: Path) -> Iterator[IO[bytes]]:
    """Open a file that is not there yet, and remove it if it is left by an error."""
    try:
        file = out.open("xb")
    except FileExistsError:
        raise SpecError(f"{out} is there already; give another path") from None
    except OSError as error:
        raise SpecError(f"cannot create {out}: {error.strerror}") from None
    try:
        with file:
            yield file
    except BaseException as error:
        out.unlink(missing_ok=True)  # half a copy is worse than none
        if isinstance(error, OSError):
            raise SpecError(f"cannot write {out}: {error.strerror}") from None
        raise


def _offset(part: Extent | Record) -> int:
    return part.offset if isinstance(part, Extent) else part.start


class _Copy:
    """One file while it is copied."""

    def __init__(self, file: File, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self.damage = list(layout.damage)
        self._channels: dict[int, int] = {}
        self._messages = 0
        self._last_ns: int | None = None

    def has_something(self) -> bool:
        return bool(self._layout.extents or self._layout.extras)

    def compression(self) -> CompressionType:
        """Return how the first chunk is compressed, which the copy will be, too."""
        for extent in self._layout.extents:
            if extent.chunked:
                head = self._file.read_at(extent.offset, CHUNK.size + len(b"zstd"))
                name_bytes = CHUNK.unpack_from(head.ljust(CHUNK.size))[-1]
                return COMPRESSIONS.get(head[CHUNK.size :][:name_bytes], CompressionType.ZSTD)
        return CompressionType.NONE

    def write(self, writer: Writer) -> Recovered:
        profile, library = self._header()
        writer.start(profile=profile, library=library)
        self._register_all(writer)
        parts: list[Extent | Record] = [*self._layout.extents, *self._layout.extras]
        for part in sorted(parts, key=_offset):
            if isinstance(part, Extent):
                self._copy_extent(writer, part)
            else:
                self._copy_extra(writer, part)
        promised = sum(self._layout.counts.values())
        lost = max(0, promised - self._messages)
        if self.damage or lost:
            told = {
                "from": encodable(self._file.path.name),
                "damage": encodable("; ".join(map(str, self.damage))),
                "messages": str(self._messages),
                "lost": str(lost),
            }
            writer.flush()  # type: ignore[no-untyped-call]
            writer.add_metadata(RECOVERED, told)
        writer.finish()  # type: ignore[no-untyped-call]
        return Recovered(self._messages, self._last_ns, lost, self.damage)

    def _header(self) -> tuple[str, str]:
        """Return the profile and library that the file names, as far as it does."""
        head = self._file.read_at(len(MAGIC), HEADER_BYTES_MAX)
        try:
            opcode, length = HEAD.unpack_from(head)
            if opcode == Opcode.HEADER:
                body = head[HEAD.size : HEAD.size + length]
                header = Header.read(ReadDataStream(BytesIO(body)))
                return header.profile, header.library
        except PARSE_ERRORS:
            pass
        return "", ""

    def _register_all(self, writer: Writer) -> None:
        """Define every channel of the file, those without a message too."""
        schemas = {0: 0}
        for id_, schema in sorted(self._layout.schemas.items()):
            schemas[id_] = writer.register_schema(schema.name, schema.encoding, schema.data)
        for id_, channel in sorted(self._layout.channels.items()):
            self._channels[id_] = writer.register_channel(
                channel.topic,
                channel.message_encoding,
                schemas.get(channel.schema_id, 0),
                channel.metadata,
            )

    def _copy_extent(self, writer: Writer, extent: Extent) -> None:
        try:
            content = read_extent(self._file, extent)
            if content.fault is not None:
                self.damage.append(content.fault)
                return
            data = content.data
            for opcode, start, end in content.records():
                if opcode != Opcode.MESSAGE:
                    continue
                id_, sequence, log_ns, publish_ns = MESSAGE.unpack_from(data, start)
                if id_ not in self._channels:
                    what = f"expected a message of a known channel, found channel {id_}"
                    self.damage.append(InputError(what, content.place))
                    continue
                payload = bytes(data[start + MESSAGE.size : end])
                writer.add_message(self._channels[id_], log_ns, payload, publish_ns, sequence)
                self._messages += 1
                self._last_ns = max(log_ns, self._last_ns or 0)
        except InputError as error:
            self.damage.append(error)

    def _copy_extra(self, writer: Writer, record: Record) -> None:
        writer.flush()  # type: ignore[no-untyped-call] # it stays behind what it came behind
        body = self._file.read_at(record.start, record.end - record.start)
        stream = ReadDataStream(BytesIO(body))
        try:
            if record.opcode == Opcode.METADATA:
                metadata = Metadata.read(stream)
                writer.add_metadata(metadata.name, metadata.metadata)
                return
            one = Attachment.read(stream)
        except PARSE_ERRORS as error:
            what = f"expected metadata or an attachment: {error}"
            self.damage.append(InputError(what, self._file.place(record.start)))
            return
        writer.add_attachment(one.create_time, one.log_time, one.name, one.media_type, one.data)

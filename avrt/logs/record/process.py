"""A run record that a process of its own writes, so that encoding it costs the run nothing.

`RemoteRecord` takes what `RunRecord` takes. Encoding clouds, pictures and JSON holds the
interpreter for a quarter of the time of a vehicle's run; here the run only hands payloads over. A
payload of a user's own class may not exist in the other process: its JSON is made here. An output
that cannot be encoded is left out and counted, and costs the record nothing else.

The process ends with the pipe: of a run that is killed it keeps what it was given. What goes wrong
there (a full disk) is raised here as OSError at one of the next calls, or at `close`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from avrt.errors import AvrtError, FaultError, SpecError, raised_by
from avrt.logs.record.frames import read_frame, write_frame
from avrt.logs.record.payload_json import to_json
from avrt.logs.record.run_record import NO_FORM, LeftOut, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from avrt.logs.raw import RawMessage
    from avrt.model.message import Message

Beginning = tuple["Path", int, dict[str, str], str, str | None]
PLAIN = frozenset((type(None), bool, int, float, str, bytes))
CONTAINERS = frozenset((list, tuple, dict))
READY = "ready"


class RemoteRecord:
    """The record of one run, written elsewhere."""

    def __init__(
        self,
        path: Path,
        *,
        zero_ns: int,
        conditions: Mapping[str, str],
        pipeline_json: str,
        pipeline_yaml: str | None = None,
    ) -> None:
        """Start the process and let it create the file; see `RunRecord`.

        Raises:
            SpecError: the file cannot be created.
        """
        self.path = path
        self._is_closed = False
        command = [sys.executable, "-m", "avrt.logs.record.process"]
        self._process = subprocess.Popen(  # noqa: S603 - our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin.fileno()
        write_frame(self._pipe, (path, zero_ns, dict(conditions), pipeline_json, pipeline_yaml))
        answer = self._answer()
        if answer != READY:
            self._is_closed = True
            raise SpecError(self._ended(answer))

    def input(self, topic: str, raw: RawMessage) -> None:
        self._send("input", topic, replace(raw, data=b""), along=raw.data)

    def output(self, stage: str, message: Message[object]) -> bool:
        """Record what a stage published; what has no form in the record is told at the end."""
        if is_known(message.payload):
            self._send("output", stage, message)
            return True
        try:
            text = to_json(message)
        except TypeError:
            return False
        self._send("output_text", stage, text, message.stamp.publish_ns)
        return True

    def journal(self, entry: str, at_ns: int) -> None:
        self._send("journal", entry, at_ns)

    def note(self, topic: str, item: object, at_ns: int) -> None:
        self._send("note", topic, item, at_ns)

    def settled(self) -> LeftOut:
        """Wait until everything so far is written; return what has no form in the record, and why.

        Raises:
            OSError: something could not be written.
        """
        self._send("settled")
        answer = self._answer()
        if not isinstance(answer, LeftOut):
            self._is_closed = True
            raise OSError(self._ended(answer))
        return answer

    def close(
        self,
        result: Mapping[str, str] | None = None,
        conditions: Mapping[str, str] | None = None,
    ) -> None:
        """Wait until everything is written; harmless when repeated.

        Raises:
            OSError: something could not be written.
        """
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError):
            write_frame(self._pipe, ("close", (result, conditions)))
        failure = self._end()
        if failure:
            raise OSError(failure)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _send(self, *call: object, along: bytes | memoryview | None = None) -> None:
        try:
            write_frame(self._pipe, (call[0], call[1:]), along)
        except OSError:
            failure = "" if self._is_closed else self._end()
            self._is_closed = True
            raise OSError(failure or "the process that writes it ended") from None

    def _end(self) -> str:
        """Take the last answer and wait for the end; return what went wrong."""
        self._close_pipe()
        return self._ended(self._answer())

    def _ended(self, answer: object) -> str:
        """Wait for the process after its last answer; return that."""
        self._close_pipe()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return str(answer)

    def _close_pipe(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _answer(self) -> object:
        assert self._process.stdout is not None
        try:
            return read_frame(self._process.stdout.fileno())[0]
        except EOFError:
            return f"the process that writes {self.path} ended (exit code {self._process.wait()})"


def is_known(payload: object) -> bool:
    """Return whether the other process knows all classes in a payload.

    A subclass of a plain class (an enum, a named tuple) is the user's.
    """
    kind = type(payload)
    match payload:
        case _ if kind in PLAIN:
            return True
        case np.generic():
            return kind.__module__ == "numpy"
        case np.ndarray():
            return kind is np.ndarray and not payload.dtype.hasobject
        case list() | tuple() | dict():
            return kind in CONTAINERS and all(map(is_known, _items(payload)))
        case _ if is_dataclass(payload) and kind.__module__.startswith("avrt."):
            return all(is_known(getattr(payload, field.name)) for field in fields(payload))
        case _:
            return False


def _items(container: Iterable[object]) -> Iterable[object]:
    return (*container, *container.values()) if isinstance(container, dict) else container


class _Writer:
    """What the process does: the calls of one record, until the pipe ends."""

    def __init__(self, record: RunRecord, answers: int) -> None:
        self._record = record
        self._answers = answers
        self._left_out = LeftOut()

    def run(self, pipe: int) -> str:
        """Write everything; return what went wrong."""
        try:
            with self._record:
                self._write_all(pipe)
        except OSError as error:
            return str(error)
        return ""

    def _write_all(self, pipe: int) -> None:
        with suppress(EOFError):
            while True:
                call, along = read_frame(pipe)
                name, given = cast("tuple[str, tuple[object, ...]]", call)
                if along is not None:
                    topic, raw = cast("tuple[str, RawMessage]", given)
                    self._record.input(topic, replace(raw, data=along))
                elif name == "settled":
                    write_frame(self._answers, self._left_out)
                elif name == "output":
                    stage, message = given
                    self._output(str(stage), cast("Message[object]", message))
                else:
                    getattr(self._record, name)(*given)

    def _output(self, stage: str, message: Message[object]) -> None:
        done: list[bool] = []
        raised = raised_by(lambda: done.append(self._record.output(stage, message)))
        if isinstance(raised, OSError):
            raise raised
        if done != [True]:
            self._left_out.add(stage, _why(raised))


def _why(raised: BaseException | None) -> str:
    """Return why an output is not in the record."""
    if raised is None:
        return NO_FORM
    return raised.detail if isinstance(raised, FaultError) else f"{type(raised).__name__}: {raised}"


def main() -> int:
    """Write one record from standard input."""
    pipe, answers = sys.stdin.fileno(), os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whoever prints must not answer
    beginning = cast("Beginning", read_frame(pipe)[0])
    try:
        record = RunRecord(
            beginning[0],
            zero_ns=beginning[1],
            conditions=beginning[2],
            pipeline_json=beginning[3],
            pipeline_yaml=beginning[4],
        )
    except (AvrtError, OSError) as error:
        write_frame(answers, str(error))
        return 1
    write_frame(answers, READY)
    with suppress(OSError):  # the run may be gone
        write_frame(answers, _Writer(record, answers).run(pipe))
    return 0


if __name__ == "__main__":
    sys.exit(main())

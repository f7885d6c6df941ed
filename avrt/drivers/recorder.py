"""Writes a run record on a thread of its own, so that encoding a cloud delays no decision.

What is to be written waits in one bounded queue and is written in that order, so the record is the
same as if it had been written at once; a full queue makes the driver wait. Of messages, which may
be large, fewer wait than of lines. Whatever goes wrong
while writing (a full disk) is raised at the next thing to be written, or at the end.
"""

from __future__ import annotations

import threading
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING

from avrt.errors import AvrtError, FaultError, raised_by
from avrt.exec.runner import guarded
from avrt.logs.record.run_record import EXECUTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.exec.runner import Result
    from avrt.logs.merge import SourceMessage
    from avrt.logs.raw import RawMessage
    from avrt.logs.record.run_record import RunRecord
    from avrt.model.message import Message

WAITING_MAX = 256
MESSAGES_MAX = 32


class Recorder:
    """Takes everything that happens in a run; without a record it does nothing.

    Attributes:
        not_recorded: by stage, outputs that have no form in the record, and why the first has none.
    """

    def __init__(self, record: RunRecord | None) -> None:
        self._record = record
        self._newest: dict[str, RawMessage] = {}
        self.not_recorded: dict[str, tuple[int, str]] = {}
        self._queue: Queue[Callable[[], object] | None] = Queue(WAITING_MAX)
        self._room = threading.Semaphore(MESSAGES_MAX)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="avrt-record", daemon=True)
        self._ended = threading.Event()
        if record is not None:
            self._thread.start()

    def journal(self, at_ns: int, line: str) -> None:
        """Record one journal entry."""
        if self._record is not None:
            self._put(partial(self._record.journal, line, at_ns))

    def input(self, item: SourceMessage) -> None:
        """Record a source's message and what belongs to it; sources may share a topic."""
        if self._record is None:
            return
        for raw in (item.raw_info, item.raw):
            if raw is not None and self._newest.get(raw.topic) is not raw:
                self._newest[raw.topic] = raw
                self._put_message(partial(self._record.input, raw.topic, raw))

    def output(self, stage: str, message: Message[object]) -> None:
        """Record an output; one that has no form in the record is counted."""
        if self._record is not None:
            self._put_message(partial(self._output, self._record, stage, message))

    def execution(self, task: str, index: int, result: Result, at_ns: int) -> None:
        """Record what a job took here."""
        if self._record is None:
            return
        item: dict[str, object] = {"task": task, "index": index, "host_ns": result.host_ns}
        if result.fault is not None:
            item["fault"] = str(result.fault)
        self._put(partial(self._record.note, EXECUTION, item, at_ns))

    def close(self) -> None:
        """Wait until everything is written; Ctrl-C gives up what still waits.

        Raises:
            OSError: something could not be.
        """
        if self._record is None:
            return
        try:
            self._finish()
        except KeyboardInterrupt as stopped:
            self._error = stopped
            self._finish()
        if self._error is not None:
            raise self._error

    def _finish(self) -> None:
        self._queue.put(None)
        self._ended.wait()  # join() takes a thread for ended once Ctrl-C has interrupted it

    def _put(self, call: Callable[[], object]) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(call)

    def _put_message(self, call: Callable[[], object]) -> None:
        """Put what holds a message, once there is room for it."""
        self._room.acquire()
        self._put(partial(self._write_message, call))

    def _write_message(self, call: Callable[[], object]) -> None:
        try:
            call()
        finally:
            self._room.release()

    def _serve(self) -> None:
        while (call := self._queue.get()) is not None:
            if self._error is None and (error := raised_by(call)) is not None:
                self._error = error
                self._room.release(MESSAGES_MAX)  # nobody waits for what is not written any more
        self._ended.set()

    def _output(self, record: RunRecord, stage: str, message: Message[object]) -> None:
        done = guarded(lambda: record.output(stage, message), (OSError, AvrtError))
        if done is True:
            return
        why = done.detail if isinstance(done, FaultError) else "it has no form in JSON"
        known, why = self.not_recorded.get(stage, (0, why))
        self.not_recorded[stage] = (known + 1, why)

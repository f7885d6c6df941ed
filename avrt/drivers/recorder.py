"""Writes a run record on a thread of its own, so that encoding a cloud delays no decision.

What is to be written waits in one backlog and is written in that order, so the record is the same
as if it had been written at once. Whatever goes wrong while writing (a full disk) ends a replay: it
is raised at the next thing to be written, or at the end. A live run goes on without its record.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from avrt.drivers.backlog import Backlog, Waiting
from avrt.errors import AvrtError, FaultError, raised_by
from avrt.exec.runner import guarded
from avrt.logs.record.run_record import EXECUTION, NO_FORM, LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.exec.runner import Result
    from avrt.logs.merge import SourceMessage
    from avrt.logs.raw import RawMessage
    from avrt.logs.record.journal import Watch
    from avrt.logs.record.run_record import Record
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.message import Message

log = logging.getLogger("avrt.drivers")


class Recorder:
    """Takes everything that happens in a run; without a record it does nothing.

    Args:
        record: where it is written.
        backlog: where it waits; by default one that makes the driver wait.
        is_vital: whether a record that cannot be written ends the run.

    Attributes:
        not_recorded: by stage or source, messages that are not in the record, and why the first is
            not.
        failure: what went wrong while writing; nothing is written after it.
    """

    def __init__(
        self, record: Record | None, backlog: Backlog | None = None, *, is_vital: bool = True
    ) -> None:
        self._record = record
        self._is_vital = is_vital
        self._newest: dict[str, RawMessage] = {}
        self.not_recorded = LeftOut()
        self.failure: BaseException | None = None
        self._backlog = Waiting() if backlog is None and record is not None else backlog

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
                self._put_message(item.source, partial(self._record.input, raw.topic, raw))

    def aside(self, raw: RawMessage) -> None:
        """Record a message that no stage reads."""
        if self._record is not None:
            self._put_message(raw.topic, partial(self._record.input, raw.topic, raw))

    def output(self, stage: str, message: Message[object]) -> None:
        """Record an output; one that has no form in the record is counted."""
        if self._record is not None:
            self._put_message(stage, partial(self._output, self._record, stage, message))

    def execution(self, task: str, index: int, result: Result, at_ns: int) -> None:
        """Record what a job took here."""
        item: dict[str, object] = {"task": task, "index": index, "host_ns": result.host_ns}
        if result.fault is not None:
            item["fault"] = str(result.fault)
        self.note(EXECUTION, item, at_ns)

    def note(self, topic: str, item: object, at_ns: int) -> None:
        """Record any plain data."""
        if self._record is not None:
            self._put(partial(self._record.note, topic, item, at_ns))

    def noticed(self, watch: Watch) -> Watch:
        """Return what tells a watch of the kernel's calls in the order of what is recorded."""

        def put(at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
            self._put(partial(watch, at_ns, events, commands))

        return put

    def close(self) -> None:
        """Wait until everything is written; Ctrl-C gives up what still waits.

        Raises:
            OSError: something could not be, and that is vital.
        """
        if self._backlog is None:
            return
        try:
            self._backlog.close()
        except KeyboardInterrupt as stopped:
            self.failure = stopped
            self._backlog.close()
        if self.failure is not None and (self._is_vital or not _is_of_the_disk(self.failure)):
            raise self.failure

    def _put(self, call: Callable[[], object]) -> None:
        if self.failure is not None:
            if self._is_vital:
                raise self.failure
            return
        assert self._backlog is not None
        self._backlog.put(partial(self._write, call))

    def _put_message(self, name: str, call: Callable[[], object]) -> None:
        """Put what holds a message, if there is room for it."""
        if self.failure is not None and self._is_vital:
            raise self.failure
        assert self._backlog is not None
        if self.failure is not None:
            self.not_recorded.add(name, "the record could not be written")
        elif not self._backlog.put_message(partial(self._write, call)):
            self.not_recorded.add(name, "too many messages waited to be written")

    def _write(self, call: Callable[[], object]) -> None:
        if self.failure is None and (raised := raised_by(call)) is not None:
            self.failure = raised
            if not self._is_vital:
                log.error("recording failed, the run goes on without it: %s", raised)

    def _output(self, record: Record, stage: str, message: Message[object]) -> None:
        done = guarded(lambda: record.output(stage, message), (OSError, AvrtError))
        if done is not True:
            self.not_recorded.add(stage, done.detail if isinstance(done, FaultError) else NO_FORM)


def _is_of_the_disk(error: BaseException) -> bool:
    return isinstance(error, OSError)

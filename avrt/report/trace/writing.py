"""A trace is written while a run goes on, or from its record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from avrt.errors import InputError, SpecError
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.recorded import read_pipeline
from avrt.logs.record.run_file import RunFile
from avrt.report.host import read_host
from avrt.report.outputs import keep_apart
from avrt.report.trace.trace import trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from avrt.logs.record.journal import Watch
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec
    from avrt.report.host import HostSample
    from avrt.report.trace.courses import Call

FORGED = (AssertionError, KeyError, StopIteration)
"""What entries that were changed since may raise: they name what the pipeline has not."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One call of the kernel, kept while the run goes on."""

    at_ns: int
    events: Sequence[Event]
    commands: Sequence[Command]


class TraceWriter:
    """Where the trace of a run goes, or nowhere; whether it can is tried before the run begins.

    Attributes:
        watch: takes each call of the kernel; None where no trace is wanted.
    """

    def __init__(self, path: str | Path | None, keep: Iterable[str | Path | None] = ()) -> None:
        """Try the file; those to keep are files that the run reads or writes.

        Raises:
            SpecError: it cannot be created, or would replace one of these.
        """
        self._path = None if path is None else Path(path)
        self._calls: list[Watched] = []
        self._is_new = False
        self.watch: Watch | None = None
        if self._path is None:
            return
        keep_apart("the trace", self._path, keep)
        is_new = not self._path.exists()
        try:
            self._path.open("ab").close()
        except OSError as error:
            raise SpecError(f"cannot create the trace {path}: {error.strerror}") from None
        self._is_new = is_new
        self.watch = self._take

    def write(
        self,
        spec: PipelineSpec,
        calls: Iterable[Call] | None = None,
        host: Sequence[HostSample] = (),
    ) -> None:
        """Write the trace of these calls of the kernel, or of all that were watched."""
        if self._path is None:
            return
        try:
            self._path.write_bytes(trace(spec, self._calls if calls is None else calls, host))
        except OSError as error:
            raise SpecError(f"cannot write the trace {self._path}: {error.strerror}") from None
        self._is_new = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave no empty file behind."""
        if self._is_new and self._path is not None:
            self._path.unlink(missing_ok=True)

    def _take(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        self._calls.append(Watched(at_ns, tuple(events), tuple(commands)))


def write_trace(record: str | Path, path: str | Path) -> None:
    """Write the trace of a recorded run; of a damaged one, of every entry that is sound.

    Raises:
        SpecError: the trace cannot be written there.
        InputError: the file is no run record, or its journal does not fit its pipeline.
    """
    with RunFile(record) as run:
        spec = read_pipeline(run, record)
        try:
            with TraceWriter(path, [record]) as writer:
                writer.write(spec, _calls(run), read_host(run).samples)
        except FORGED as error:
            what = f"the journal does not fit the recorded pipeline: {error!r}"
            raise InputError(what, str(record)) from None


def _calls(run: RunFile) -> Iterator[Call]:
    """Yield the entries of a journal that are sound."""
    for line in run.journal():
        if not line.damaged:
            try:
                yield parse_entry(line.text)
            except ValueError:
                return

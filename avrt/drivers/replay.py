"""Replay: a recorded log through the pipeline, with stages that really compute.

In virtual time (`replay`) the real computation overlaps virtual time under modelled and recorded
timing: it starts at dispatch and is waited for only when its virtual completion is reached. Under
measured timing each job is waited for at once, so stages run one at a time. Decisions depend on
virtual time only, so a loaded machine makes a replay slower and never different; a stage that hangs
for `hang_timeout_ns` of host time is the one exception, and the result says so.

At the wall clock (`clock` is given) messages come when they came, times the rate, streams run side
by side, and a job takes what it takes here: see `wall`.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from avrt.drivers.ballots import voter_of
from avrt.drivers.flight import FlightRecorder
from avrt.drivers.prefetch import prefetched
from avrt.drivers.recorder import Recorder
from avrt.drivers.result import RunResult
from avrt.drivers.supervision import supervisor_of
from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.wall import WallLoop
from avrt.drivers.worker import StageWorker
from avrt.errors import SpecError
from avrt.exec.process import frozen_garbage, quick_switching, set_threads
from avrt.exec.runner import HANG_TIMEOUT_NS
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, all_of
from avrt.metrics.run import RunFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from avrt.config.binding import BoundStage
    from avrt.drivers.ballots import MakeVoter
    from avrt.drivers.execution import Timing
    from avrt.drivers.wall import WallClock
    from avrt.exec.process import Interrupts
    from avrt.logs.merge import SourceMessage
    from avrt.logs.record.journal import Watch
    from avrt.logs.record.run_record import Record
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec


def replay(  # noqa: PLR0913 - all after the log is optional and named
    spec: PipelineSpec,
    stages: Mapping[str, BoundStage],
    log: Iterable[SourceMessage],
    timing: Timing,
    *,
    clock: WallClock | None = None,
    record: Record | None = None,
    hang_timeout_ns: int = HANG_TIMEOUT_NS,
    progress: Callable[[int], None] | None = None,
    watch: Watch | None = None,
    voter: MakeVoter = voter_of,
) -> RunResult:
    """Run a log through a pipeline.

    Args:
        spec: a checked pipeline.
        stages: one instance per stage of the pipeline, by name.
        log: its sources' messages in order.
        timing: how long jobs take in virtual time.
        clock: replays at the wall clock; `timing` counts for nothing then.
        record: takes everything that happens, or a flight recorder, which keeps some of it.
        hang_timeout_ns: host time after which a stage counts as hung.
        progress: told the pipeline time of each message.
        watch: told each call of the kernel.
        voter: makes the voter of a redundant stage.

    Raises:
        SpecError: the pipeline needs something that replay cannot do, or a stage cannot warm up.
        KeyboardInterrupt: a second Ctrl-C came, and the run ended wherever it was.
    """
    check_drivable(spec, clock)
    set_threads(max(device.threads for device in spec.devices))
    result = RunResult(RunFigures(spec))
    recorder = Recorder(record)
    noticed = recorder.noticed(record.watch) if isinstance(record, FlightRecorder) else None
    write = None if record is None else recorder.journal
    journal = Journal(write, result.listen, all_of(result.figures.watch, watch, noticed))
    host_ns = None if clock is None else clock.at_ns
    worker = StageWorker(
        spec, stages, timing, result.figures, recorder, hang_timeout_ns, host_ns, voter=voter
    )
    try:
        worker.warm()
        with _ahead(log, clock) as items, frozen_garbage(), worker.interrupts:
            loop = _loop(spec, worker, worker.feed(items, progress), journal, clock)
            result.wakeup_late_ns = loop.late_ns
            result.interrupted = not _came_to_its_end(loop, worker.interrupts)
    except KeyboardInterrupt:
        if worker.interrupts.forced:
            raise
        result.interrupted = True
    finally:
        worker.close()
        recorder.close()
    assert worker.digest is not None
    result.decisions, result.payloads = journal.digest, worker.digest.hexdigest()
    result.damage, result.hangs = worker.damage, worker.hangs
    result.not_recorded = recorder.not_recorded
    return result


@contextmanager
def _ahead(
    log: Iterable[SourceMessage], clock: WallClock | None
) -> Iterator[Iterable[SourceMessage]]:
    """Read ahead at the wall clock; nobody reads any more at the end, however the run ended."""
    if clock is None:
        yield log
        return
    with closing(prefetched(log)) as items, quick_switching():
        yield items


def _came_to_its_end(loop: VirtualLoop | WallLoop, interrupts: Interrupts) -> bool:
    """Run a loop; return False if Ctrl-C ended it between two steps."""
    try:
        loop.run()
    except KeyboardInterrupt:
        if interrupts.forced:
            raise
        loop.stop()
        return False
    return True


def _loop(
    spec: PipelineSpec,
    worker: StageWorker,
    feed: Iterator[tuple[int, Event]],
    journal: Journal,
    clock: WallClock | None,
) -> VirtualLoop | WallLoop:
    """Return the loop for virtual time, or for a wall clock."""
    if clock is None:
        return VirtualLoop(spec, Kernel(spec), feed, worker, journal)
    supervisor = supervisor_of(spec)
    return WallLoop(Kernel(spec), feed, worker, journal, clock, supervisor=supervisor)


def check_drivable(spec: PipelineSpec, clock: WallClock | None) -> None:
    """Refuse what stages that really compute cannot do in this version."""
    for stage in spec.stages:
        if clock is not None and stage.segments:
            what = "a stage computes as one piece at the wall clock; remove 'segments'"
            raise SpecError(what, ("stages", stage.name, "segments"))
    for device in spec.devices:
        if clock is not None and device.preemptive:
            what = "nothing takes a running job off its slot at the wall clock; remove it"
            raise SpecError(what, ("devices", device.name, "preemptive"))

"""Live: sensors, stages and devices in real time, under the same kernel as everything else.

Who does what:

* the driver's thread takes what came out of its inbox, calls the kernel, and starts jobs: nothing
  else, and it never waits for anybody (`wall`);
* a thread for each feed delivers messages (`feeds`, `mailbox`);
* a thread for each stage computes (`exec.stream`);
* one thread writes what happened, some milliseconds later (`backlog`);
* the caller's thread waits, looks on, and takes Ctrl-C.

The run is over when every feed is, when its time is up or when Ctrl-C comes: releases cease, and
what is open finishes. A second Ctrl-C gives up what does not. A device that breaks is tried again
(`revival`) and proves itself (`probation`); meanwhile its stages run on its fallback.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from avrt import clock
from avrt.drivers.backlog import Passing
from avrt.drivers.draft import message_of
from avrt.drivers.execution import MeasuredTiming
from avrt.drivers.gate import GRACE_NS
from avrt.drivers.host_watch import HostWatch
from avrt.drivers.mailbox import Mailbox
from avrt.drivers.probation import Probation, Turns
from avrt.drivers.recorder import Recorder
from avrt.drivers.replay import check_drivable
from avrt.drivers.restarts import Restarts
from avrt.drivers.result import RunResult
from avrt.drivers.revival import Revival
from avrt.drivers.shadows import Shadows
from avrt.drivers.supervision import supervisor_of
from avrt.drivers.wall import WallLoop
from avrt.drivers.worker import StageWorker
from avrt.errors import FaultError, raised_by
from avrt.exec.process import ended_as_by_ctrl_c, set_threads
from avrt.exec.runner import HANG_TIMEOUT_NS, describe, guarded
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal, all_of
from avrt.metrics.progress import progress_of
from avrt.metrics.run import RunFigures
from avrt.model.events import Drain
from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.config.binding import BoundStage
    from avrt.drivers.feeds import Feed
    from avrt.drivers.orders import Orders
    from avrt.drivers.wall import Inbox, WallClock
    from avrt.logs.merge import SourceMessage
    from avrt.logs.record.journal import Watch
    from avrt.logs.record.run_record import Record
    from avrt.metrics.progress import Progress
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec

LOOK_NS = 250 * NS_PER_MS
LISTEN_NS = 10 * NS_PER_MS  # between two looks at a sensor that is silent
CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """How a live run goes, beside its pipeline.

    Attributes:
        duration_ns: pipeline time after which releases cease; None runs until the feeds end.
        record: takes everything that happens, as far as it can keep up.
        hang_timeout_ns: host time after which a stage counts as hung.
        is_realtime: whether the host is asked for what real time needs.
        probe: tells whether a device that broke works again.
        remake: makes the stage of a task anew, and its variants; None leaves a hung one lost.
        orders: of somebody who may, for the ladder.
        look: told how the run stands, several times a second.
        watch: told each call of the kernel, on the recorder's thread.
    """

    duration_ns: int | None = None
    record: Record | None = None
    hang_timeout_ns: int = HANG_TIMEOUT_NS
    is_realtime: bool = True
    probe: Callable[[str], bool] = field(default=lambda _device: True)
    remake: Callable[[str], Mapping[str, BoundStage]] | None = None
    orders: Orders | None = None
    look: Callable[[Progress], None] | None = None
    watch: Watch | None = None


def live(
    spec: PipelineSpec,
    stages: Mapping[str, BoundStage],
    feeds: Sequence[Feed],
    wall: WallClock,
    options: LiveOptions,
) -> RunResult:
    """Run a pipeline in real time.

    Its payloads have no digest (`RunResult.payloads` is ""): no run will have the same ones, and
    that of 6 MB kept its stage busy for 34 ms (an Intel Xeon at 2 GHz, with another's load).

    Args:
        spec: a checked pipeline.
        stages: one instance per stage, by name.
        feeds: what delivers the messages of its sources.
        wall: pipeline time.
        options: everything else.

    Raises:
        SpecError: the pipeline needs something that cannot be done live, or a stage cannot warm up.
        KeyboardInterrupt: a second Ctrl-C came, and the run ended wherever it was.
    """
    check_drivable(spec, wall)
    set_threads(max(device.threads for device in spec.devices))
    result = RunResult(RunFigures(spec))
    host = HostWatch(spec, is_realtime=options.is_realtime)
    backlog = Passing(partial(host.other, "recorder"))
    recorder = Recorder(options.record, backlog, is_vital=False)
    try:
        worker = StageWorker(
            spec,
            stages,
            MeasuredTiming(),
            result.figures,
            recorder,
            options.hang_timeout_ns,
            wall.at_ns,
            host.stream,
            digested=False,
            keeps=options.remake is not None,
        )
        try:
            worker.warm()
            with host, ended_as_by_ctrl_c():
                _Run(spec, worker, feeds, wall, options, result, backlog, recorder, host).run()
        finally:
            worker.close()
    finally:
        recorder.close()
    result.hangs, result.not_recorded = worker.hangs, recorder.not_recorded
    result.record_failure = "" if recorder.failure is None else str(recorder.failure)
    return result


class _Run:
    """One live run, from the first message to the last job."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a run is made of
        self,
        spec: PipelineSpec,
        worker: StageWorker,
        feeds: Sequence[Feed],
        wall: WallClock,
        options: LiveOptions,
        result: RunResult,
        backlog: Passing,
        recorder: Recorder,
        host: HostWatch,
    ) -> None:
        self._spec = spec
        self._host = host
        self._worker = worker
        self._feeds = feeds
        self._wall = wall
        self._options = options
        self._result = result
        self._backlog = backlog
        self._recorder = recorder
        self._stopped = threading.Event()
        self._has_ended = False
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._boxes = {source.name: Mailbox() for source in spec.sources}
        self._unclosed = list(feeds)
        self._open_feeds = self._unready_feeds = len(feeds)
        self._lock = threading.Lock()
        self._raised: BaseException | None = None
        self._progress: Progress | None = None
        self._inbox: Inbox = SimpleQueue()
        write = None if options.record is None else recorder.journal
        self._journal = Journal(write, result.listen, all_of(result.figures.watch, options.watch))
        supervisor = supervisor_of(spec)
        self._loop = WallLoop(Kernel(spec), iter(()), worker, self, wall, self._inbox, supervisor)
        if options.duration_ns is not None:
            self._loop.end_ns = options.duration_ns - 1  # its last instant
        self._revival = self._revival_of(worker)
        worker.device_lost = self._revival.lost
        if options.orders is not None:
            options.orders.attach(self._inbox)
        if (remake := options.remake) is not None:
            make = lambda task: worker.made_anew(task, remake(task))  # noqa: E731
            worker.stream_hung = Restarts(self._inbox, make, worker.replace, self._stopped).hung

    def _revival_of(self, worker: StageWorker) -> Revival:
        """Return what brings lost devices back; they prove themselves where stages can be made."""
        options, remake, shadows = self._options, self._options.remake, Shadows()
        make = None if remake is None else lambda task, _device: remake(task)
        worker.shadows = None if remake is None else shadows
        timeout_ns, prepare = options.hang_timeout_ns, self._host.twin
        probation = Probation(self._spec, shadows, make, timeout_ns, prepare, Turns())
        trial = lambda device: probation.trial(device, frozenset(worker.lost_devices))  # noqa: E731
        revival = Revival(self._inbox, options.probe, trial, shadows, self._stopped)
        revival.prepare = self._host.other
        revival.back = worker.lost_devices.discard
        return revival

    def run(self) -> None:
        """Start all threads, and wait for the driver's to end."""
        driver = threading.Thread(target=self._drive, name="avrt-driver", daemon=True)
        threads = [
            threading.Thread(
                target=self._feed, args=(feed,), name=f"avrt-feed-{feed.name}", daemon=True
            )
            for feed in self._feeds
        ]
        try:
            for thread in threads:
                thread.start()
            while self._unready_feeds:
                clock.take(self._bell, LOOK_NS)
            driver.start()
            self._look_on()
        except KeyboardInterrupt:
            self._result.interrupted = True
            self._stop()
            if not driver.is_alive() and not self._has_ended:
                driver.start()
            self._look_on()
        finally:
            self._stopped.set()
            self._wall.started.set()  # feeds may still wait for a driver that did not begin
            self._close_feeds()
        for thread in threads:
            if thread.is_alive():
                thread.join(CLOSE_SECONDS)
        if self._raised is not None:
            raise self._raised
        self._conclude()

    def note(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Leave a call of the kernel to be written; this is the driver's journal."""
        self._backlog.put(partial(self._journal.note, at_ns, events, commands))

    # On the driver's thread

    def _drive(self) -> None:
        self._raised = raised_by(self._drive_loop)
        self._has_ended = True
        self._bell.put(None)

    def _drive_loop(self) -> None:
        self._host.driver()
        self._loop.run()

    def _arrived(self, name: str, now_ns: int) -> Sequence[Event]:
        letter = None if self._loop.is_over(now_ns) else self._boxes[name].take()
        if letter is None:
            return ()
        message, seen = letter
        self._recorder.input(seen.item)
        return (self._worker.arrival(message),) if self._worker.gate.admits(seen) else ()

    def _listened(self, now_ns: int) -> Sequence[Event]:
        """Tell the gate how late it is, once what came by then is surely here."""
        if not self._loop.is_over(now_ns):
            self._worker.gate.until(now_ns - GRACE_NS)
        return ()

    # On the threads of feeds

    def _feed(self, feed: Feed) -> None:
        raised = raised_by(partial(self._open, feed))
        with self._lock:
            self._unready_feeds -= 1
        self._bell.put(None)
        if raised is None:
            self._wall.started.wait()
            deliver = partial(self._deliver, feed)
            raised = raised_by(lambda: feed.run(deliver, self._wall, self._stopped))
        if raised is not None:
            self._result.source_faults[feed.name] = describe(raised)
        with self._lock:
            self._open_feeds -= 1
            if self._open_feeds == 0:
                self._inbox.put(_drain)

    def _open(self, feed: Feed) -> None:
        self._host.feed(f"feed-{feed.name}")
        feed.open(self._host.feed)

    def _deliver(self, feed: Feed, item: SourceMessage) -> None:
        while feed.aside:
            self._recorder.aside(feed.aside.popleft())
        seen = self._worker.gate.look_at(item)
        message = message_of(seen.item, checked=self._spec.checksums)
        self._boxes[item.source].put((message, seen))
        self._inbox.put(partial(self._arrived, item.source))

    # On the caller's thread

    def _look_on(self) -> None:
        """Wait for the driver to end; look at the figures, and at the time, meanwhile."""
        until_ns, look = self._options.duration_ns, self._options.look
        while not self._ends_within(self._wait_ns(until_ns)):
            now_ns = self._wall.now_ns()
            if until_ns is not None and self._wall.started.is_set() and now_ns >= until_ns:
                self._stop()
                until_ns = None
            if (alarm_ns := self._alarm_ns()) is not None and now_ns >= alarm_ns:
                self._inbox.put(self._listened)
            self._host.note(self._recorder, self._wall)
            if look is not None:
                self._backlog.put(partial(self._take_stock, now_ns))
                if self._progress is not None:
                    look(self._progress)

    def _ends_within(self, wait_ns: int) -> bool:
        """Wait for the driver to end; return whether it has.

        What Ctrl-C interrupts must hold no lock then, as an Event in Python may.
        """
        if not self._has_ended:
            clock.take(self._bell, wait_ns)
        return self._has_ended

    def _take_stock(self, now_ns: int) -> None:
        """See how the run stands, on the thread that keeps the figures."""
        progress = progress_of(self._result.figures, now_ns, self._loop.late_ns)
        self._progress = replace(progress, dropped=self._dropped, host=self._host.told())

    @property
    def _dropped(self) -> dict[str, int]:
        return {name: box.dropped for name, box in self._boxes.items() if box.dropped}

    def _wait_ns(self, until_ns: int | None) -> int:
        if not self._wall.started.is_set():
            return LOOK_NS
        waits = [LOOK_NS]
        if until_ns is not None:
            waits.append(self._wall.host_left_ns(until_ns))
        if (alarm_ns := self._alarm_ns()) is not None:
            waits.append(max(LISTEN_NS, self._wall.host_left_ns(alarm_ns)))
        return max(0, min(waits))

    def _alarm_ns(self) -> int | None:
        """Return when the driver is to tell the gate how late it is, if nothing comes."""
        alarm_ns = self._worker.gate.alarm_ns
        return None if alarm_ns is None else alarm_ns + GRACE_NS

    def _stop(self) -> None:
        self._stopped.set()
        self._inbox.put(_drain)
        self._close_feeds()

    def _close_feeds(self) -> None:
        """Close each feed once; what the first fault of one was is told."""
        while self._unclosed:
            feed = self._unclosed.pop(0)
            done = guarded(feed.close, (KeyboardInterrupt,))
            if isinstance(done, FaultError):
                self._result.source_faults.setdefault(feed.name, done.detail)

    def _conclude(self) -> None:
        """Take down what only the end knows, once everything noted is written."""
        self._host.finish()
        self._host.note(self._recorder, self._wall)
        self._recorder.close()
        result = self._result
        result.conditions = {**self._host.conditions(), **self._worker.conditions()}
        misses = result.figures.misses
        result.resources = self._host.load(misses, self._wall.host_ns, self._loop.late)
        result.decisions = self._journal.digest
        result.wakeup_late_ns = self._loop.late_ns
        result.taken = {name: box.taken for name, box in self._boxes.items()}
        result.dropped = self._dropped
        result.devices_out = self._revival.out
        result.damage = next((f.damage for f in self._feeds if f.damage is not None), None)


def _drain(_now_ns: int) -> Sequence[Event]:
    """End the releases; what comes later comes too late."""
    return (Drain(),)

"""One run of a campaign: a drive through a pipeline in virtual time, with faults or without.

The golden run has no tap anywhere; a run with faults has all of them, and whatever they hit is
decided by the faults alone. Every run lasts as long as the drive, also where no source says
anything any more. What a run showed is what judging it takes: outputs of critical stages, what told
of faults, levels, and the digest of all decisions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING

from avrt.drivers.execution import ModelTiming
from avrt.drivers.inject.applied import Applied
from avrt.drivers.inject.detection import (
    alarm_of_flaw,
    alarm_of_log,
    alarms_of,
    alarms_of_sensor,
)
from avrt.drivers.inject.devices import device_events
from avrt.drivers.inject.held import HeldLog
from avrt.drivers.inject.jobs import TappedWorker
from avrt.drivers.inject.messages import broken, spoilt
from avrt.drivers.inject.proving import ProvingLoop, Returns
from avrt.drivers.probation import Probation
from avrt.drivers.recorder import Recorder
from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.worker import StageWorker
from avrt.errors import raised_by
from avrt.exec.runner import HANG_TIMEOUT_NS
from avrt.kernel import Kernel
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog
from avrt.logs.record.journal import Journal
from avrt.metrics.observed import Observed, output_of
from avrt.metrics.run import RunFigures
from avrt.model.commands import Record
from avrt.model.records import ModeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from avrt.config.binding import BoundStage
    from avrt.logs.raw import RawMessage
    from avrt.logs.reader import LogReader
    from avrt.metrics.observed import Detection
    from avrt.model.campaign import Injection
    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.guard import FlawRecord, SensorRecord
    from avrt.model.message import Message
    from avrt.model.spec import PipelineSpec, SourceSpec


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs of a campaign share.

    Attributes:
        make: makes fresh stages.
        critical: the stages whose outputs count.
        zero_ns: pipeline time zero in the log's clock.
        end_ns: when the last message of the drive comes, pipeline ns.
    """

    spec: PipelineSpec
    make: Callable[[], Mapping[str, BoundStage]]
    log: HeldLog
    critical: Collection[str]
    zero_ns: int
    end_ns: int

    @property
    def frames(self) -> int:
        """How many messages the source has that has the fewest."""
        counts = Counter(raw.topic for raw in self.log.raws)
        return min((counts[source.topic or ""] for source in self.spec.sources), default=0)


def run_once(bench: Bench, faults: Sequence[Injection] = ()) -> Observed:
    """Run the drive once; whatever the run itself raises is part of what it showed.

    Raises:
        KeyboardInterrupt: Ctrl-C came.
    """
    observed, applied = Observed(), Applied()
    raised = raised_by(lambda: _run(bench, faults, observed, applied))
    if isinstance(raised, KeyboardInterrupt):
        raise raised
    if raised is not None:
        observed.crash = f"{type(raised).__name__}: {raised}"
    observed.injected_ns = applied.times_ns
    observed.detections.sort(key=lambda found: found.at_ns)
    return observed


def _run(bench: Bench, faults: Sequence[Injection], observed: Observed, applied: Applied) -> None:
    spec, log = bench.spec, bench.log
    topic_of = {source.name: source.topic or "" for source in spec.sources}
    raws = broken(log.raws, topic_of, faults, bench.zero_ns, applied)
    merged = _HeardLog(HeldLog(log.infos, raws, log.anomalies), spec.sources, bench.zero_ns)
    items = spoilt(with_models(merged, spec.cameras), faults, applied)
    worker = _worker(bench, faults, observed, applied)
    journal = Journal(listen=lambda at_ns, commands: _listen(observed, at_ns, commands))
    try:
        worker.warm()
        with worker.interrupts:
            feed = merge(
                device_events(faults, bench.end_ns, applied),
                worker.feed(items, None),
                key=lambda entry: entry[0],
            )
            _loop(bench, worker, feed, journal).run()
            worker.gate.until(bench.end_ns)
    finally:
        worker.close()
    observed.detections += merged.heard
    observed.digest = journal.digest
    if worker.damage is not None:
        raise worker.damage


def _loop(
    bench: Bench, worker: StageWorker, feed: Iterator[tuple[int, Event]], journal: Journal
) -> VirtualLoop:
    """Return a loop over the whole drive; without faults no device has to prove itself."""
    spec, until_ns = bench.spec, bench.end_ns + 1
    if not isinstance(worker, TappedWorker):
        return VirtualLoop(spec, Kernel(spec), feed, worker, journal, until_ns=until_ns)

    def make(task: str, device: str) -> Mapping[str, BoundStage]:
        made = bench.make().items()
        return worker.tapped(device, {n: s for n, s in made if n.partition("@")[0] == task})

    assert worker.shadows is not None
    returns = Returns(Probation(spec, worker.shadows, make, worker.hang_timeout_ns))
    return ProvingLoop(spec, feed, worker, journal, returns, until_ns)


def _worker(
    bench: Bench, faults: Sequence[Injection], observed: Observed, applied: Applied
) -> StageWorker:
    spec, timing = bench.spec, ModelTiming(bench.spec)
    recorder = _Watched(observed, bench.critical)
    made, figures = bench.make(), _HeardFigures(bench.spec, observed)
    if not faults:
        return StageWorker(spec, made, timing, figures, recorder, HANG_TIMEOUT_NS)
    return TappedWorker(spec, made, timing, figures, recorder, HANG_TIMEOUT_NS, faults, applied)


def _listen(observed: Observed, at_ns: int, commands: Sequence[Command]) -> None:
    """Take in what the kernel tells."""
    for command in commands:
        if type(command) is not Record:
            continue
        observed.detections += alarms_of(command.record, at_ns)
        if isinstance(command.record, ModeRecord) and command.record.entered:
            observed.levels.append((at_ns, command.record.mode))


class _HeardLog(MergedLog):
    """Hears of each anomaly at its own time; the log itself keeps the first of each kind.

    Attributes:
        heard: all of them.
    """

    def __init__(self, reader: LogReader, sources: Sequence[SourceSpec], zero_ns: int) -> None:
        self.heard: list[Detection] = []
        self._began_ns = zero_ns
        super().__init__(reader, sources)

    def _tell(self, raw: RawMessage, kind: str, detail: str) -> None:
        self.heard.append(alarm_of_log(raw.log_ns - self._began_ns, raw.topic, kind))
        super()._tell(raw, kind, detail)


class _HeardFigures(RunFigures):
    """Hears of what guards reject, and of sensors that are out of use."""

    def __init__(self, spec: PipelineSpec, observed: Observed) -> None:
        super().__init__(spec)
        self._observed = observed

    def flaw(self, record: FlawRecord) -> None:
        self._observed.detections.append(alarm_of_flaw(record))
        super().flaw(record)

    def sensor(self, record: SensorRecord) -> None:
        self._observed.detections.extend(alarms_of_sensor(record))
        self._observed.sensors.append((record.at_ns, record.source, record.state == "ok"))
        super().sensor(record)


class _Watched(Recorder):
    """Keeps the outputs of critical stages in place of a record."""

    def __init__(self, observed: Observed, critical: Collection[str]) -> None:
        super().__init__(None)
        self._outputs = observed.outputs
        self._outputs.update((stage, []) for stage in critical)

    def output(self, stage: str, message: Message[object]) -> None:
        if stage in self._outputs:
            self._outputs[stage].append(output_of(message))

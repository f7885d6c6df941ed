"""What of a run is shown where in its trace.

* `sources`: a track each, with its arrivals.
* A group for each device: a track for each stream that runs there, below it how many of its jobs
  are ready, and for the device how many are ready and how many in flight.
* `chains`: reaction, age and path as counters; a broken promise as an instant.
* `run`: modes, lost devices and streams.

* `host`: of a recorded run in real time, what it used of its host.

Every job is exactly one slice of category `job`: its first piece, or an instant where it ended if
it never ran. Further pieces have category `piece` and the same `job`. Arrows go from an arrival or
a job's last piece to the first piece of each job that read it. Where a device has a clock, what it
worked lies as a slice of category `device` in the job's last piece. Times are pipeline ns, as in
the journal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from avrt.model.records import (
    ChainBroken,
    ChainRecord,
    JobRecord,
    ModeRecord,
    ResourceRecord,
    SyncRecord,
    VoteRecord,
)
from avrt.report.trace.args import args_of, job_args, title
from avrt.report.trace.courses import Courses
from avrt.report.trace.file import TraceFile
from avrt.report.trace.live import draw_host, work_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.model.spec import PipelineSpec
    from avrt.report.host import HostSample
    from avrt.report.trace.args import Happening
    from avrt.report.trace.courses import Call, Course
    from avrt.report.trace.file import Args

FIGURES = ("reaction", "age", "path")
Change = tuple[int, int]
"""When a count changes, and by how much."""


def trace(spec: PipelineSpec, calls: Iterable[Call], host: Sequence[HostSample] = ()) -> bytes:
    """Return the trace file of a run: of its pipeline and of every call of the kernel.

    Args:
        spec: the pipeline.
        calls: of the kernel, in the order of time.
        host: samples of the host, where they were taken.
    """
    courses = Courses(calls, {d.name for d in spec.devices if d.preemptive})
    return _Drawing(spec, courses, host).data()


class _Drawing:
    """The tracks of one run, and what is on them."""

    def __init__(self, spec: PipelineSpec, courses: Courses, host: Sequence[HostSample]) -> None:
        self._courses = courses
        self._file = TraceFile()
        self._stage_of = {task: s.name for s in spec.stages for task in s.task_names}
        self._home = {task: s.home(task) for s in spec.stages for task in s.task_names}
        self._groups: dict[str, int] = {}
        self._streams: dict[tuple[str, str], int] = {}
        self._ready: dict[tuple[str, str], list[Change]] = {}
        self._in_flight: dict[str, list[Change]] = {d.name: [] for d in spec.devices}
        self._draw_sources(spec)
        for device in spec.devices:
            self._groups[device.name] = self._file.add_track(
                f"device {device.name} ({device.slots_told})"
            )
        for task, device_name in self._home.items():
            self._stream(device_name, task)
        for number, course in courses.jobs.items():
            self._draw_job(number, course)
        self._draw_counts()
        self._draw_records(spec)
        draw_host(self._file, host)

    def data(self) -> bytes:
        return self._file.data()

    def _draw_sources(self, spec: PipelineSpec) -> None:
        if not spec.sources:
            return
        group = self._file.add_track("sources")
        tracks = {s.name: self._file.add_track(s.name, group) for s in spec.sources}
        for arrival in self._courses.arrivals:
            event = arrival.event
            args = args_of(event, leave_out=("buffer",))
            name, at_ns = f"{event.source} {event.sequence}", arrival.at_ns
            self._file.add_instant(
                tracks[event.source],
                name,
                at_ns,
                category="arrival",
                args=args,
                flows=arrival.reads,
            )

    def _stream(self, device: str, task: str) -> int:
        """Return the track of a stream where it runs on a device."""
        key = device, task
        if key not in self._streams:
            self._streams[key] = self._file.add_track(task, self._groups[device])
            self._ready[key] = []
        return self._streams[key]

    def _draw_job(self, number: int, course: Course) -> None:
        if course.dispatch is None and course.record is None:
            return  # the record is damaged: only an end of it is left
        args = job_args(number, course, self._stage_of)
        task, outcome, reason = str(args["task"]), str(args["outcome"]), str(args["reason"])
        told = "" if outcome == "met" else f" {outcome}{reason and f': {reason}'}"
        name = f"{task} {args['index']}{told}"
        if not course.pieces:
            assert course.record is not None
            track, at_ns = self._stream(self._home[task], task), course.record.end_ns
            self._file.add_instant(track, name, at_ns, category="job", args=args)
        for place, piece in enumerate(course.pieces):
            is_first, is_last = place == 0, place == len(course.pieces) - 1
            assert piece.end_ns is not None
            part: Args = {"piece": place, "segment": piece.segment}
            self._file.add_slice(
                self._stream(piece.device, task),
                name,
                (piece.start_ns, piece.end_ns),
                category="job" if is_first else "piece",
                args={**args, **part} if is_first else {"job": number, **part},
                flows=[*(course.read if is_first else ()), *(course.reads if is_last else ())],
            )
            self._in_flight[piece.device] += ((piece.start_ns, 1), (piece.end_ns, -1))
        self._draw_work(number, course)
        self._count_ready(task, course)

    def _draw_work(self, number: int, course: Course) -> None:
        """Draw what the device worked by its clock, where it lies in the job's last piece."""
        record, times = course.record, work_of(course)
        if record is None or times is None:
            return
        began_ns, done_ns = times
        piece = course.pieces[-1]
        assert piece.end_ns is not None
        self._file.add_slice(
            self._stream(piece.device, record.task),
            "working",
            times,
            category="device",
            args={
                "job": number,
                "handing_over_ns": began_ns - piece.start_ns,
                "reporting_ns": piece.end_ns - done_ns,
            },
        )

    def _count_ready(self, task: str, course: Course) -> None:
        """Note when a job was ready to run and on no slot, and for which device."""
        pieces, record = course.pieces, course.record
        waits: list[tuple[str, int | None, int | None]] = []
        if record is not None:
            first = pieces[0].start_ns if pieces else record.end_ns
            waits.append(
                (pieces[0].device if pieces else self._home[task], record.arrival_ns, first)
            )
        waits += [
            (after.device, before.end_ns, after.start_ns) for before, after in pairwise(pieces)
        ]
        if record is not None and pieces:
            waits.append((pieces[-1].device, pieces[-1].end_ns, record.end_ns))
        for device, from_ns, until_ns in waits:
            assert from_ns is not None
            assert until_ns is not None
            if from_ns < until_ns:
                self._ready[device, task] += ((from_ns, 1), (until_ns, -1))

    def _draw_counts(self) -> None:
        for device, group in self._groups.items():
            whole: list[Change] = []
            for (place, task), changes in self._ready.items():
                if place == device:
                    whole += changes
                    self._draw_count(self._file.add_track(f"{task} ready", group, "count"), changes)
            self._draw_count(self._file.add_track("ready jobs", group, "count"), whole)
            in_flight = self._file.add_track("jobs in flight", group, "count")
            self._draw_count(in_flight, self._in_flight[device])

    def _draw_count(self, track: int, changes: list[Change]) -> None:
        values, value = {0: 0}, 0
        for at_ns, change in sorted(changes):
            value += change
            values[at_ns] = value
        shown = 0
        for at_ns, value in values.items():
            if value != shown or at_ns == 0:
                self._file.add_count(track, at_ns, value)
                shown = value

    def _draw_records(self, spec: PipelineSpec) -> None:
        chains = self._file.add_track("chains") if spec.chains else 0
        tracks = {chain.name: self._file.add_track(chain.name, chains) for chain in spec.chains}
        figures = {
            (chain.name, figure): self._file.add_track(f"{chain.name} {figure}", chains, "ns")
            for chain in spec.chains
            for figure in FIGURES
        }
        run = self._file.add_track("run")
        for record in self._courses.records:
            match record:
                case ChainRecord(chain=chain, at_ns=at_ns):
                    for figure in FIGURES:
                        value = getattr(record, f"{figure}_ns")
                        if value is not None:
                            self._file.add_count(figures[chain, figure], at_ns, value)
                case ChainBroken(chain=chain):
                    self._draw_record(tracks[chain], record)
                case ModeRecord() | ResourceRecord():
                    self._draw_record(run, record)
                case SyncRecord(stage=stage) | VoteRecord(stage=stage):
                    task = spec.stage(stage).task_names[0]
                    self._draw_record(self._stream(self._home[task], task), record)
                case JobRecord():
                    pass  # drawn as a slice
                case _:
                    self._draw_record(self._stream(self._home[record.task], record.task), record)

    def _draw_record(self, track: int, record: Happening) -> None:
        category, name = title(record)
        self._file.add_instant(track, name, record.at_ns, category=category, args=args_of(record))

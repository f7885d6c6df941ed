"""Records as live runs leave them, made by hand: every time in them is known."""

from __future__ import annotations

import json

import avrt
from avrt.logs.record.journal import Journal
from avrt.logs.record.run_record import RESOURCES, RunRecord
from avrt.metrics.resources import Level, ResourceLoad
from avrt.metrics.run import RunFigures
from avrt.model.codec import encode, to_json
from avrt.model.commands import Dispatch, Record
from avrt.model.events import Completed, Started
from avrt.model.records import Interval, JobRecord, MissRecord
from avrt.report.summary import RunSummary

MS = 1_000_000
HOST_NS = 7_000_000_000_000
"""Host time of pipeline time 0."""
RIGHTS = {
    "realtime.fifo:driver": "granted: SCHED_FIFO 80",
    "realtime.fifo:it": "granted: SCHED_FIFO 40",
    "realtime.fifo:see": "granted: SCHED_FIFO 40",
    "realtime.memory_lock": "refused: not permitted (EPERM)",
    "cores_plan": "nothing is pinned",
}
JOBS = (  # release, dispatch, work begins, work ends, reported: ms
    (100, 101, 103, 120, 121),
    (200, 202, 205, 290, 294),  # late
    (250, 294, 295, 305, 306),
)


def make_spec():
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu"}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(lambda cloud: cloud, name="it", inputs={"cloud": "lidar"}, wcet="60 ms",
                 deadline="80 ms")  # fmt: skip
    return pipeline.spec


def calls(begin_ns=0, *, clocked=True):
    """Yield every call of the kernel; the devices of a run that is not clocked have no clock."""
    for index, (release, start, began, done, end) in enumerate(JOBS):
        times = [begin_ns + ms * MS for ms in (release, start, began, done, end)]
        release_ns, start_ns, began_ns, done_ns, end_ns = times
        due_ns = release_ns + 80 * MS
        dispatch = Dispatch(index, "it", index, "it", "cpu", 0, "", (None,), release_ns, due_ns)
        yield start_ns, [], [dispatch]
        if end_ns > due_ns:
            why = (Interval("running", release_ns, due_ns, "it", index),)
            missed = MissRecord(index, "it", index, due_ns, release_ns, due_ns, why)
            yield due_ns, [], [Record(missed)]
        outcome = "late" if end_ns > due_ns else "met"
        record = JobRecord(
            index, index, "it", "it", index, release_ns, release_ns, due_ns, start_ns, end_ns,
            outcome, "", end_ns - start_ns, began_ns if clocked else None,
            done_ns if clocked else None, (),
        )  # fmt: skip
        events = [Started(index, began_ns)] if clocked else []
        yield end_ns, [*events, Completed(index, index, done_ns)], [Record(record)]


def sample(since_ms, at_ms, begin_ns=0, **more):
    """Return a sample of the host as a record has it."""
    return {
        "since_ns": HOST_NS + begin_ns + since_ms * MS, "at_ns": HOST_NS + begin_ns + at_ms * MS,
        "cores": 2, "process_cores": 1.25, "others_cores": 0.5, "steal_cores": None,
        "rss_bytes": 300 << 20, **more,
    }  # fmt: skip


SAMPLES = (sample(-60, 150), sample(150, 250, process_cores=1.5), sample(250, 350))
LOAD = ResourceLoad(
    3,
    {"process_cores": Level.of([1.25, 1.5, 1.25]), "rss_bytes": Level.of([300 << 20])},
    {"starved": 1},
    "the host was starved: others kept 42% of the cores busy",
)


def write_live_record(path, conditions=RIGHTS, begin_ns=0, samples=SAMPLES, *, closed=True):
    """Write a record; one that is not closed with a result is like those of flights."""
    spec = make_spec()
    text = to_json(encode(spec))
    told = {"timing": "measured", "clock": "live, rate 1", **conditions}
    figures = RunFigures(spec)
    with RunRecord(path, zero_ns=0, conditions=told, pipeline_json=text) as record:
        journal = Journal(lambda at_ns, line: record.journal(line, at_ns), listen=None)
        for at_ns, events, commands in calls(begin_ns):
            journal.note(at_ns, events, commands)
            for command in commands:
                figures.take(command)
        for item in samples:
            record.note(RESOURCES, item, max(0, item["at_ns"] - HOST_NS))
        if closed:
            summary = RunSummary(spec, figures, "measured", told, end_ns=at_ns, resources=LOAD)
            run = json.dumps(summary.data())
            record.close({"decisions": journal.digest, "run": run}, told)
    return path

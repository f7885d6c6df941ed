"""The same job in two runs, and what becomes of its miss."""

import pytest

from avrt.metrics.changes import JobLog, compare_jobs
from avrt.metrics.lineage import Lineage
from avrt.model.commands import Publish, Record
from avrt.model.records import Interval, JobRecord, MissRecord
from avrt.model.spec import (
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    RedundancySpec,
    SourceSpec,
    StageSpec,
)


def make_stage(name, source, **keys):
    inputs = (InputSpec(name="x", source=source),)
    return StageSpec(
        name=name, device="cpu", wcet_ns=1, deadline_ns=9, inputs=inputs, trigger="x", **keys
    )


SPEC = PipelineSpec(
    name="p",
    devices=(DeviceSpec(name="cpu"),),
    sources=(SourceSpec(name="lidar", type="lidar"),),
    stages=(
        make_stage("scan", "lidar"),
        make_stage("track", "scan"),
        make_stage("plan", "track", redundancy=RedundancySpec(copies=2)),
    ),
)


def ended(  # noqa: PLR0913
    task, index, outcome="met", *, activation=0, end_ns=5, reason="", job=0
):
    stage = task.split(".")[0]
    record = JobRecord(
        job, activation, task, stage, index, 0, 0, 9, 1, end_ns, outcome, reason, 1, None, None, ()
    )
    return Record(record)


def test_an_output_less_shifts_indices_and_not_roots():
    lineage = Lineage(SPEC)
    assert lineage.root("scan", 7) == 7
    for activation, index in enumerate((0, 2, 3)):
        lineage.take([ended("scan", index, activation=activation), Publish(activation, 0, 5)])
    assert [lineage.root("track", index) for index in range(3)] == [0, 2, 3]
    lineage.take([ended("track", 1, activation=8), Publish(8, 0, 5)])
    assert lineage.root("plan.0", 0) == lineage.root("plan.1", 0) == 2
    assert lineage.origin(8) == ("track", 2)


def test_what_ends_without_an_output_releases_nothing():
    lineage = Lineage(SPEC)
    lineage.take([ended("scan", 0, "aborted")])
    with pytest.raises(IndexError):
        lineage.root("track", 0)


def log(*commands):
    made = JobLog(SPEC)
    made.take(commands)
    return made


MISS = MissRecord(4, "scan", 0, 9, 0, 9, (Interval("running", 0, 9, "scan", 4),))


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([ended("scan", 0)], [ended("scan", 0, end_ns=7)], []),
        ([ended("scan", 0)], [ended("scan", 0, "late", end_ns=11)], ["appears"]),
        ([ended("scan", 0, "late", end_ns=11)], [ended("scan", 0)], ["vanishes"]),
        ([ended("scan", 0, "late", end_ns=11)], [ended("scan", 0, "late", end_ns=12)], ["moves"]),
        ([ended("scan", 0, "late", end_ns=11)], [ended("scan", 0, "late", end_ns=11)], []),
        ([ended("scan", 0, "shed", reason="overload")],
         [ended("scan", 0, "shed", reason="queue_full")], ["moves"]),
        ([ended("scan", 0)], [], []),
        ([], [ended("scan", 0)], []),
        ([ended("scan", 0, "late")], [], ["vanishes"]),
        ([], [ended("scan", 0, "late")], ["appears"]),
    ],
)  # fmt: skip
def test_a_miss_appears_vanishes_or_moves(before, after, kinds):
    assert [change.kind for change in compare_jobs(log(*before), log(*after))] == kinds


def test_the_reason_is_that_of_the_second_run():
    after = log(Record(MISS), ended("scan", 0, "late", end_ns=11, job=4))
    (change,) = compare_jobs(log(ended("scan", 0)), after)
    assert change.miss is MISS
    (back,) = compare_jobs(after, log(ended("scan", 0)))
    assert back.miss is None

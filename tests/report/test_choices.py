"""Runs are alike, times aside, exactly where they chose alike."""

import threading

import pytest

import avrt
from avrt.report.choices import first_difference
from avrt.report.comparison import compare


def count(cloud):
    return int(cloud.payload.count)


def both(first, second):
    return [None if m is None else m.payload for m in (first, second)]


@pytest.fixture
def pipeline():
    made = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 1}})
    made.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    made.add(count, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    made.add(
        both,
        inputs={"first": "lidar", "second": {"from": "count", "optional": True}},
        trigger="first",
        wcet="5 ms",
        deadline="90 ms",
    )
    return made


def test_the_same_run_is_alike(make_drive, pipeline, tmp_path):
    paths = [tmp_path / f"{name}.mcap" for name in "ab"]
    for path in paths:
        pipeline.replay(make_drive(4), out=path)
    assert first_difference(*paths) == (None, 8)
    assert compare(*paths).equal


def test_a_job_that_is_late_in_one_of_them_is_named(make_drive, pipeline, tmp_path):
    quick, slow = tmp_path / "quick.mcap", tmp_path / "slow.mcap"
    pipeline.replay(make_drive(4), out=quick)
    pipeline._stages["count"]["wcet"] = "60 ms"
    pipeline.replay(make_drive(4), out=slow)
    difference, jobs = first_difference(quick, slow)
    assert (difference.task, difference.index, jobs) == ("count", 0, 8)
    first, second = difference.sides
    assert first.told().startswith("met, read lidar 0, was dispatch 0 on cpu; released at 0.000000")
    assert second.told().startswith("late, read lidar 0")
    assert "60 ms of 50 ms" in second.told()


def test_a_job_that_only_one_of_them_has_is_named(make_drive, pipeline, tmp_path):
    long, short = tmp_path / "long.mcap", tmp_path / "short.mcap"
    pipeline.replay(make_drive(4), out=long)
    pipeline.replay(make_drive(3), out=short)
    difference, _ = first_difference(long, short)
    assert (difference.task, difference.index, difference.differing) == ("count", 3, 2)
    assert difference.sides[1] is None
    assert any("has no such job" in line for line in compare(long, short)._verdict())


@pytest.mark.slow
@pytest.mark.live
def test_a_live_run_chose_what_virtual_time_chooses_with_its_times(make_drive, tmp_path):
    """Jobs that take far less than the time between messages leave no choice."""
    live, again = tmp_path / "live.mcap", tmp_path / "again.mcap"
    waiting = threading.Event()

    def slow(cloud):
        waiting.wait(0.002)
        return int(cloud.payload.count)

    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(slow, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="10 s")
    pipeline.run(make_drive(6), record=live, rate=1)
    pipeline.replay(make_drive(6), out=again, timing=f"recorded:{live}")
    assert not compare(live, again).equal
    assert first_difference(live, again) == (None, 6)

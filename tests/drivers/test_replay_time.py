"""A replay's time: nothing but virtual time decides, whatever the host does."""

import threading

import pytest
from small_stages import FOREVER_S, count_points, failing, keep_to, total

import avrt
from avrt.model.records import MissRecord

MS = 1_000_000


# Nothing but virtual time decides


def test_two_stages_compute_at_once(make_drive, make_pipeline):
    barrier = threading.Barrier(2, timeout=FOREVER_S)

    def meet(cloud):
        barrier.wait()
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(meet, name="a", inputs={"cloud": "lidar"}, wcet="30 ms", deadline="1 s")
    pipeline.add(meet, name="b", inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(make_drive(3))
    assert report.jobs["met"] == 6


def test_a_stage_that_waits_for_a_later_one_changes_nothing(make_drive, make_pipeline):
    """`a` really ends after `b` although in virtual time it ends before `b` does."""

    def run(*, reverse):
        done = threading.Event()

        def first(cloud):
            if reverse:
                assert done.wait(FOREVER_S)
                done.clear()
            return total(cloud)

        def second(cloud):
            try:
                return total(cloud)
            finally:
                done.set()

        pipeline = make_pipeline()
        pipeline.add(first, name="a", inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
        pipeline.add(second, name="b", inputs={"cloud": "lidar"}, wcet="30 ms", deadline="1 s")
        return pipeline.replay(make_drive(3)).data["digests"]

    assert run(reverse=False) == run(reverse=True)


def test_the_same_run_gives_the_same_digests_and_another_log_others(
    make_drive, make_pipeline, tmp_path
):
    def run(seed, out=None):
        pipeline = make_pipeline()
        pipeline.add(total, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
        return pipeline.replay(make_drive(seed=seed), out=out).data["digests"]

    first = run(0)
    assert run(0, tmp_path / "run.mcap") == first
    other = run(1)
    assert other["payloads"] != first["payloads"]
    assert other["decisions"] == first["decisions"]


def test_one_pipeline_replays_again_and_again_with_fresh_stages(make_drive, make_pipeline):
    class Counts(avrt.Stage):
        def __init__(self):
            self.count = 0

        def process(self, cloud):
            self.count += 1
            return (self.count, cloud.stamp.sequence)

    pipeline = make_pipeline()
    pipeline.add(Counts, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    drive = make_drive()
    runs = [pipeline.replay(drive).data for _ in range(2)]
    assert runs[0]["digests"] == runs[1]["digests"]
    assert runs[0]["stages"]["Counts"]["jobs"] == runs[1]["stages"]["Counts"]["jobs"]


def test_a_consumer_cannot_change_what_another_one_reads(
    make_drive, make_pipeline, tmp_path, read_ends
):
    def make(cloud):
        return {"a": cloud.payload.xyz + 1}

    def spoil(cloud):
        cloud.payload["a"][:] = 0
        return 1

    pipeline = make_pipeline()
    pipeline.add(make, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(spoil, inputs={"cloud": "make"}, wcet="5 ms", deadline="1 s")
    report = pipeline.replay(make_drive(2), out=tmp_path / "run.mcap")
    assert read_ends(tmp_path / "run.mcap", "spoil") == [("aborted", "failure")] * 2
    assert "read-only" in report.data["stages"]["spoil"]["first_fault"]


def test_the_points_of_the_log_cannot_be_changed_either(make_drive, make_pipeline):
    def spoil(cloud):
        cloud.payload.xyz[0] = 0
        return 1

    pipeline = make_pipeline()
    pipeline.add(spoil, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    assert pipeline.replay(make_drive(2)).data["faults"] == {"spoil: exception": 2}


# Measured and recorded times


def test_measured_runs_one_at_a_time_and_charges_host_time(
    make_drive, make_pipeline, tmp_path, read_records
):
    running = []

    def alone(cloud):
        running.append(1)
        assert len(running) == 1
        running.pop()
        return cloud.stamp.sequence

    pipeline = make_pipeline()
    pipeline.add(alone, name="a", inputs={"cloud": "lidar"}, wcet="30 ms", deadline="10 s")
    pipeline.add(alone, name="b", inputs={"cloud": "lidar"}, wcet="30 ms", deadline="10 s")
    report = pipeline.replay(make_drive(3), timing="measured", out=tmp_path / "run.mcap")
    assert not report.summary.reproducible
    assert report.summary.timing == "measured"
    jobs = read_records(tmp_path / "run.mcap")
    assert len(jobs) == 6
    assert all(job.executed_ns >= 1 for job in jobs)
    execution = report.summary.figures.stages["a"]
    assert execution.execution.summary()["max"] >= execution.host_execution.summary()["max"]


def durations(run, task):
    return [job.executed_ns for job in run if job.task == task]


@pytest.mark.parametrize("on_miss", ["continue", "abort", "skip_next"])
def test_a_recorded_run_gives_its_decisions_again(make_drive, make_pipeline, tmp_path, on_miss):
    """Deadlines of 1 ns: every job runs past its own, and goes on where it is aborted."""

    def run(timing, name):
        pipeline = make_pipeline(slots=1)
        pipeline.add(
            total,
            name="a",
            inputs={"cloud": "lidar"},
            wcet="1 ns",
            deadline="1 ns",
            on_miss=on_miss,
        )
        pipeline.add(failing, name="b", inputs={"cloud": "lidar"}, wcet="1 ns", deadline="1 ns",
                     on_miss=on_miss)  # fmt: skip
        return pipeline.replay(make_drive(4), timing=timing, out=tmp_path / name)

    first = run("measured", "first.mcap")
    again = run(f"recorded:{tmp_path / 'first.mcap'}", "again.mcap")
    assert again.summary.timing == "recorded"
    assert again.summary.reproducible
    assert again.data["digests"] == first.data["digests"]


# Overload


def overloaded(make_pipeline, on_miss, **keys):
    pipeline = make_pipeline(slots=1)
    pipeline.add(count_points, name="long", inputs={"cloud": "lidar"}, wcet="90 ms",
                 deadline="200 ms", on_miss="continue")  # fmt: skip
    pipeline.add(count_points, name="short", inputs={"cloud": "lidar"}, wcet="40 ms",
                 deadline="60 ms", on_miss=on_miss, **keys)  # fmt: skip
    return pipeline


@pytest.mark.parametrize(
    ("on_miss", "reason"),
    [("continue", None), ("abort", ("aborted", "deadline")), ("skip_next", ("skipped", "busy"))],
)
def test_misses_come_at_their_due_times_and_are_explained(  # noqa: PLR0913, PLR0917
    make_drive, make_pipeline, tmp_path, read_records, read_ends, on_miss, reason
):
    out = tmp_path / "run.mcap"
    report = overloaded(make_pipeline, on_miss).replay(make_drive(8), out=out)
    misses = read_records(out, MissRecord)
    assert misses
    assert report.data["misses"] == len(misses)
    jobs = {job.job: job for job in read_records(out)}
    for miss in misses:
        assert miss.at_ns == miss.due_ns == jobs[miss.job].due_ns
        assert miss.intervals[0].start_ns == miss.release_ns == jobs[miss.job].release_ns
        assert miss.intervals[-1].end_ns == miss.at_ns
        spans = [i.end_ns - i.start_ns for i in miss.intervals]
        assert all(span > 0 for span in spans)
        assert sum(spans) == miss.at_ns - miss.release_ns
        assert jobs[miss.job].outcome in {"late", "aborted"}
    ends = read_ends(out, "short")
    assert len(ends) == 8
    if reason is not None:
        assert reason in ends
        assert ("late", "") not in ends or on_miss == "skip_next"


def test_a_full_queue_sheds_the_oldest(make_drive, make_pipeline, tmp_path, read_ends):
    pipeline = make_pipeline(slots=1)
    pipeline.add(count_points, name="long", inputs={"cloud": "lidar"}, wcet="450 ms",
                 deadline="10 s", queue=2)  # fmt: skip
    pipeline.replay(make_drive(6), out=tmp_path / "run.mcap")
    ends = read_ends(tmp_path / "run.mcap", "long")
    assert ends.count(("shed", "queue_full")) == 2
    assert ends.count(("met", "")) == 4


def test_a_budget_that_is_spent_aborts(make_drive, make_pipeline, tmp_path, read_ends):
    pipeline = make_pipeline()
    pipeline.add(count_points, inputs={"cloud": "lidar"}, wcet="30 ms", deadline="1 s",
                 budget="20 ms", on_overrun="abort")  # fmt: skip
    report = pipeline.replay(make_drive(3), out=tmp_path / "run.mcap")
    assert read_ends(tmp_path / "run.mcap", "count_points") == [("aborted", "budget")] * 3
    assert report.data["stages"]["count_points"]["overruns"] == 3


def test_a_job_that_is_aborted_still_computes_so_that_state_is_the_same(make_drive, make_pipeline):
    seen = []
    pipeline = make_pipeline()
    pipeline.add(keep_to(seen), name="it", inputs={"cloud": "lidar"}, wcet="30 ms",
                 deadline="20 ms", on_miss="abort")  # fmt: skip
    report = pipeline.replay(make_drive(3))
    assert report.jobs["aborted"] == 3
    assert [m.stamp.sequence for m in seen] == [0, 1, 2]


def test_a_preemptive_device_stops_aborted_work_and_nothing_of_it_is_kept(make_drive, workers):
    pipeline = avrt.Pipeline("p", devices={"sim": {"type": "simulated", "preemptive": True}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(count_points, inputs={"cloud": "lidar"}, wcet="30 ms", deadline="20 ms",
                 on_miss="abort")  # fmt: skip
    report = pipeline.replay(make_drive(40))
    assert report.jobs["aborted"] == 40
    assert len(workers[0]._running) <= 1

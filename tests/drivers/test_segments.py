"""Stages of several segments in virtual time: simulated, replayed, recorded; never at the wall."""

import pytest
from builder import Bench, device, stage, timer
from hypothesis import given
from hypothesis import strategies as st
from small_stages import total

import avrt
from avrt.config.pipeline import parse
from avrt.drivers.execution import RecordedTiming
from avrt.drivers.hosts import fit_to_host
from avrt.drivers.simulate import simulate
from avrt.drivers.verify import verify
from avrt.errors import SpecError
from avrt.model.records import JobRecord, MissRecord
from avrt.model.segments import split
from avrt.model.spec import DeviceSpec, PipelineSpec, SegmentSpec
from pipelines import examples

MS = 1_000_000
SEGMENTS = [
    {"device": "cpu", "wcet": "10 ms"},
    {"device": "gpu", "wcet": "30 ms"},
    {"device": "cpu", "wcet": "10 ms"},
]


def segments(*parts):
    return tuple(SegmentSpec(device=name, wcet_ns=wcet) for name, wcet in parts)


def parted(name, period_ns, *parts, **keys):
    whole_ns = sum(wcet for _, wcet in parts)
    return timer(name, period_ns, segments=segments(*parts), wcet_ns=whole_ns, **keys)


@examples(50)
@given(st.integers(1, 10**12), st.lists(st.integers(1, 10**6), min_size=1, max_size=8))
def test_a_time_is_divided_in_proportion_and_nothing_is_lost(cost_ns, shares):
    parts = split(cost_ns, shares)
    assert len(parts) == len(shares)
    assert min(parts) >= 1
    whole = sum(shares)
    exact = [cost_ns * share / whole for share in shares]
    if min(exact) >= 1:
        assert sum(parts) == cost_ns
        assert all(abs(part - want) <= 1 for part, want in zip(parts, exact, strict=True))


def test_a_simulated_job_takes_its_time_over_its_segments():
    devices = (device(), device("gpu"))
    work = parted("work", 100, ("cpu", 2), ("gpu", 6), ("cpu", 2), deadline_ns=50)
    beat = timer("beat", 100, offset_ns=3, wcet_ns=4, deadline_ns=40)
    spec = Bench(work, beat, devices=devices).spec
    result = simulate(spec, until_ns=100, execution=lambda task, _: 5 if task == "work" else 4)
    assert [(j.task, j.start_ns, j.end_ns, j.executed_ns) for j in result.jobs] == [
        ("beat", 3, 7, 4),
        ("work", 0, 8, 5),
    ]


def test_one_that_never_ends_hangs_in_its_first_segment():
    work = parted("work", 100, ("cpu", 2), ("gpu", 6))
    spec = Bench(work, devices=(device(), device("gpu"))).spec
    result = simulate(spec, until_ns=50, execution=lambda _task, _index: None)
    assert [(j.outcome, j.reason) for j in result.jobs] == [("aborted", "hang")]


@pytest.mark.parametrize("preemptive", [True, False])
def test_an_abort_in_the_middle_ends_with_the_segment_or_at_once(preemptive):
    work = parted("work", 20, ("cpu", 2), ("gpu", 8), ("cpu", 2), deadline_ns=5, on_miss="abort")
    after = timer("after", 100, offset_ns=4, device="gpu", wcet_ns=3, deadline_ns=40)
    devices = (device(), device("gpu", preemptive=preemptive))
    result = simulate(Bench(work, after, devices=devices).spec, until_ns=20)
    ends = {j.task: (j.outcome, j.end_ns) for j in result.jobs}
    assert ends == {"work": ("aborted", 5), "after": ("met", 8 if preemptive else 13)}


def test_a_job_aborted_between_two_segments_leaves_nothing_behind():
    long = timer("long", 100, device="gpu", wcet_ns=30, deadline_ns=90)
    work = parted("work", 50, ("cpu", 2), ("gpu", 8), deadline_ns=5, on_miss="abort")
    result = simulate(Bench(long, work, devices=(device(), device("gpu"))).spec, until_ns=60)
    assert [(j.outcome, j.end_ns) for j in result.jobs_of("work")] == [
        ("aborted", 5),
        ("aborted", 55),
    ]
    (first, _) = [r for r in result.records if isinstance(r, MissRecord)]
    assert [(i.kind, i.start_ns, i.end_ns, i.by) for i in first.intervals] == [
        ("running", 0, 2, "work"),
        ("blocking", 2, 5, "long"),
    ]


# Replay


@pytest.fixture
def pipeline():
    devices = {"cpu": {"type": "cpu"}, "gpu": {"type": "simulated"}}
    made = avrt.Pipeline("p", devices=devices)
    made.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    made.add(total, name="work", inputs={"cloud": "lidar"}, segments=SEGMENTS, deadline="90 ms")
    made.add(total, name="also", device="cpu", inputs={"cloud": "lidar"}, wcet="20 ms",
             deadline="95 ms")  # fmt: skip
    return made


def test_a_replayed_stage_computes_once_and_its_time_is_on_its_devices(
    make_drive, pipeline, tmp_path, read_records
):
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(3), out=out)
    jobs = {j.task: j for j in read_records(out, JobRecord) if j.index == 0}
    assert jobs["work"].response_ns == 50 * MS
    assert jobs["also"].response_ns == 30 * MS, "it runs while the first one is on the gpu"
    assert len(avrt.read_outputs(out, "work")) == 3
    assert verify(out).equal


def test_a_recorded_run_gives_the_time_of_all_segments(make_drive, pipeline, tmp_path):
    out = tmp_path / "run.mcap"
    pipeline.replay(make_drive(3), out=out)
    timing = RecordedTiming(pipeline.spec, out)
    assert [timing.cost_ns("work", index) for index in range(3)] == [50 * MS] * 3
    again = pipeline.replay(make_drive(3), timing=f"recorded:{out}")
    assert again.jobs["met"] == 6


def test_at_the_wall_clock_a_stage_of_several_segments_is_refused(make_drive, pipeline):
    with pytest.raises(SpecError, match=r"stages\.work\.segments: a stage computes as one piece"):
        pipeline.replay(make_drive(1), clock="wall")


def test_a_segment_of_a_gpu_that_is_not_here_goes_to_its_fallback():
    gpu = DeviceSpec(name="gpu", type="cuda:0", fallback="cpu")
    work = stage("work", "lidar", segments=segments(("cpu", 1), ("gpu", 5)))
    spec = PipelineSpec(name="p", devices=(DeviceSpec(name="cpu"), gpu), stages=(work,))
    fitted, _ = fit_to_host(spec)
    assert [s.device for s in fitted.stages[0].segments] == ["cpu", "cpu"]


def test_a_job_that_spins_twice_never_ties_with_itself():
    """Its first hold is preempted and dropped; the second one has the same key and stage."""
    spec = parse(
        """\
pipeline: twice
policy: fp
devices:
  host: {type: simulated, preemptive: true, slots: 2}
  gpu: {type: simulated, preemptive: true}
stages:
  a: {device: host, period: 10 ms, offset: 143 us, wcet: 600 us, deadline: 4 ms, priority: 1}
  spins:
    period: 10 ms
    deadline: 800 us
    priority: 3
    criticality: ASIL-C
    segments:
      - {device: host, wcet: 100 us}
      - {device: gpu, wcet: 200 us, wait: spin}
      - {device: host, wcet: 100 us}
      - {device: gpu, wcet: 100 us, wait: spin}
  b:
    period: 10 ms
    offset: 143 us
    deadline: 4 ms
    priority: 2
    segments: [{device: host, wcet: 200 us}, {device: host, wcet: 200 us}]
""",
        "twice",
    ).spec
    jobs = simulate(spec, until_ns=1_000_000_000).jobs
    assert {job.outcome for job in jobs if job.task != "spins"} == {"met"}
    assert len(jobs) == 300

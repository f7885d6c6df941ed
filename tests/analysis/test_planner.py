"""Tables computed ahead: right ones only, always the same, and a clear word if there is none."""

from dataclasses import replace
from itertools import product

import pytest
from builder import device, stage, timer
from hypothesis import given
from hypothesis import strategies as st

from avrt.analysis.planner import JOBS_MAX, find_table, planned
from avrt.analysis.schedulability import analyse
from avrt.analysis.table import outcomes, table_faults
from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.errors import SpecError
from avrt.model.graph import check
from avrt.model.records import TableRecord, VoteRecord
from avrt.model.spec import (
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    RedundancySpec,
    SourceSpec,
    StageSpec,
    SyncSpec,
    TableRow,
    TableSpec,
)
from pipelines import Picker, examples

PERIODS = (10, 20, 20, 40)


def pipeline(*stages, devices=(), sources=(), **keys):
    devices = devices or (device(),)
    spec = PipelineSpec(
        name="p", policy="table", devices=devices, sources=sources, stages=stages, **keys
    )
    check(spec)
    return spec


@st.composite
def task_sets(draw):
    """Small pipelines: timers, sources and triggers, replicas, on one or two devices."""
    pick = Picker(draw, 48)
    devices = (device("d0", slots=pick((1, 1, 2))), device("d1"))
    sources, stages = [], []
    for number in range(pick.integer(1, 5)):
        kind = pick(("timer", "source", "trigger", "trigger") if stages else ("timer", "source"))
        period_ns, name = pick(PERIODS), f"t{number}"
        keys = {"period_ns": period_ns, "offset_ns": pick((0, 0, 3, 12))}
        if kind != "timer":
            before = pick(stages).name if kind == "trigger" else f"s{number}"
            keys = {"inputs": (InputSpec(name="x", source=before),), "trigger": "x"}
        if kind == "source":
            sources.append(SourceSpec(name=before, type="lidar", period_ns=period_ns))
        wcet_ns = pick.integer(1, 5)
        stages.append(
            StageSpec(
                name=name,
                device=pick(devices).name,
                wcet_ns=wcet_ns,
                bcet_ns=pick((wcet_ns, 1)),
                jitter_ns=pick((0, 0, 0, 0, 2)),
                deadline_ns=pick((5, 8, 12, 20, 40)) + wcet_ns // 2,
                publish=pick(("asap", "asap", "asap", "at_deadline")),
                deadline_from=pick(("release", "release", "release", "capture")),
                redundancy=pick((None, None, None, RedundancySpec(copies=2))),
                **keys,
            )
        )
    return pipeline(*stages, devices=devices, sources=tuple(sources))


def found(spec):
    """The pipeline with its table, or None."""
    try:
        return planned(spec)
    except SpecError:
        return None


def run(spec, cycles=5, **keys):
    until_ns = cycles * spec.table.cycle_ns
    feed = list(periodic_arrivals(spec, until_ns))
    return simulate(spec, until_ns=until_ns, feed=feed, digest=False, **keys)


@examples(60)
@given(task_sets())
def test_a_table_is_executed_as_planned(spec):
    """With every job taking its wcet no job misses, and every start is one of its row."""
    spec = found(spec)
    if spec is None:
        return
    table, result = spec.table, run(spec)
    assert all(job.outcome == "met" for job in result.jobs)
    assert [r for r in result.records if isinstance(r, TableRecord)] == []
    for job in result.jobs:
        assert job.start_ns % table.cycle_ns in table.starts_ns(job.task)
    for place in spec.devices:
        names = [s.name for s in spec.stages if s.device == place.name]
        jobs = [job for job in result.jobs if job.stage in names]
        edges = sorted([(j.start_ns, 1) for j in jobs] + [(j.end_ns, -1) for j in jobs])
        running = 0
        for _, change in edges:
            running += change
            assert running <= place.slots


@examples(60)
@given(task_sets())
def test_responses_are_those_of_the_analysis(spec):
    """Attained where best and worst case are one; never exceeded where they are not."""
    spec = found(spec)
    if spec is None:
        return
    result, worst = run(spec), outcomes(spec, spec.table)
    for item in spec.stages:
        ends = {}
        for job in result.jobs:
            if job.stage == item.name:
                ends[job.activation] = max(ends.get(job.activation, 0), job.response_ns)
        same = all(s.bcet_ns == s.wcet_ns and not s.jitter_ns for s in spec.stages)
        seen_ns, known_ns = max(ends.values()), worst[item.name].response_ns
        assert seen_ns == known_ns if same else seen_ns <= known_ns
        assert analyse(spec).stage(item.name).verdict in {"meets", "unknown"}


@examples(40)
@given(task_sets(), st.lists(st.booleans(), min_size=3, max_size=7))
def test_no_start_depends_on_how_long_others_take_within_their_wcet(spec, shorts):
    spec = found(spec)
    if spec is None:
        return
    bcet_ns = {task: s.bcet_ns for s in spec.stages for task in s.task_names}
    wcet_ns = {task: s.wcet_ns for s in spec.stages for task in s.task_names}

    def cost(task, index):
        return (bcet_ns if shorts[index % len(shorts)] else wcet_ns)[task]

    usual, varied = run(spec), run(spec, execution=cost)
    starts = [
        sorted((j.task, j.index, j.start_ns) for j in result.jobs) for result in (usual, varied)
    ]
    assert starts[0] == starts[1]
    assert all(job.outcome == "met" for job in varied.jobs)
    worst = outcomes(spec, spec.table)
    assert all(job.response_ns <= worst[job.stage].response_ns for job in varied.jobs)


def _undecided(result):
    """Whether a vote found nothing by its deadline, so that what follows was not released."""
    return any(isinstance(r, VoteRecord) and r.verdict == "none" for r in result.records)


@examples(60)
@given(task_sets(), st.integers(1, 30))
def test_after_an_overrun_every_late_start_is_told_and_the_plan_comes_back(spec, more_ns):
    spec = found(spec)
    if spec is None:
        return
    wcet_ns = {task: s.wcet_ns for s in spec.stages for task in s.task_names}
    first = spec.stages[0].task_names[0]

    def cost(task, index):
        return wcet_ns[task] + (more_ns if (task, index) == (first, 1) else 0)

    result = run(spec, cycles=12, execution=cost)
    late = {r.job: r.planned_ns for r in result.records if isinstance(r, TableRecord)}
    usual = {(j.task, j.index): j.start_ns for j in run(spec, cycles=12).jobs}
    for job in result.jobs:
        if job.start_ns is None:
            continue
        assert late.get(job.job, job.start_ns) % spec.table.cycle_ns in spec.table.starts_ns(
            job.task
        )
        assert job.start_ns >= late.get(job.job, job.start_ns)
        if not _undecided(result) and not any(j.outcome == "shed" for j in result.jobs):
            assert late.get(job.job, job.start_ns) == usual[job.task, job.index]


@examples(60)
@given(task_sets())
def test_a_table_is_the_same_every_time(spec):
    first = found(spec)
    assert first == found(spec)
    if first is not None:
        assert planned(first) == first


def small_sets():
    """Every two tasks on one slot of a cycle of six: cost, offset and deadline."""
    kinds = list(product((1, 2), (0, 2), (2, 4)))
    for (c, o, d), other in product(kinds, repeat=2):
        yield (
            timer("a", 3, wcet_ns=c, offset_ns=o, deadline_ns=d),
            timer("b", 6, wcet_ns=other[0], offset_ns=other[1], deadline_ns=other[2]),
        )


def test_of_small_sets_none_with_a_table_is_refused():
    """All tables of these are tried."""
    counts = {True: 0, False: 0}
    for stages in small_sets():
        spec = pipeline(*stages)
        exists = any(
            not table_faults(spec, table)
            for a0, a1, b in product(range(6), range(6), range(6))
            if a0 < a1
            for table in [_table(a=(a0, a1), b=(b,))]
        )
        counts[exists] += 1
        assert (found(spec) is not None) == exists
    assert min(counts.values()) > 5


def _table(**starts):
    return TableSpec(
        cycle_ns=6, rows=tuple(TableRow(task=t, starts_ns=times) for t, times in starts.items())
    )


def test_a_gap_is_left_for_what_comes_later_and_is_more_urgent():
    """Non-preemptive EDF starts slow at 5 and makes the fast of 10 late (Jeffay et al. 1991)."""
    spec = pipeline(
        timer("fast", 10, wcet_ns=3, deadline_ns=3),
        timer("slow", 20, wcet_ns=6, deadline_ns=20, offset_ns=5),
    )
    edf = replace(spec, policy="edf")
    assert any(job.outcome == "late" for job in simulate(edf, until_ns=40).jobs)
    assert found(spec).table.starts_ns("slow") == (13,)


def test_most_sets_that_the_properties_draw_have_a_table():
    """So that they are not empty."""
    drawn = []

    @examples(60, database=None)
    @given(task_sets())
    def collect(spec):
        drawn.append(found(spec) is not None)

    collect()
    assert sum(drawn) > len(drawn) // 2


def test_the_cycle_is_the_least_common_multiple_and_wraps():
    spec = pipeline(timer("a", 4, wcet_ns=1), timer("b", 6, wcet_ns=2, offset_ns=5))
    table = find_table(spec)
    assert table.cycle_ns == 12
    assert [len(row.starts_ns) for row in table.rows] == [3, 2]


def test_other_policies_have_no_table():
    spec = replace(pipeline(timer("a")), policy="edf")
    assert planned(spec) is spec


LIDAR = SourceSpec(name="lidar", type="lidar", period_ns=33_333_333)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            lambda: pipeline(stage("scan", "lidar"), sources=(replace(LIDAR, period_ns=None),)),
            r"stages\.scan: a table needs the rate of all that releases a stage",
        ),
        (
            lambda: pipeline(stage("scan", "lidar"), timer("beat", 10**8), sources=(LIDAR,)),
            r"policy: periods of 33333333 ns, 100000000 ns repeat only after .* 133333333 jobs",
        ),
        (
            lambda: pipeline(timer("a", 1), timer("b", JOBS_MAX)),
            r"policy: periods of 1 ns, 10000 ns repeat only after 10 us, with 10001 jobs",
        ),
        (
            lambda: pipeline(timer("a", 10, wcet_ns=6), timer("b", 20, wcet_ns=9)),
            r"devices\.cpu: no table can be right: 1\.05 of 1 slot are asked for",
        ),
        (
            lambda: pipeline(timer("a", wcet_ns=11)),
            r"stages\.a\.wcet: no table can be right: wcet 11 ns is above the deadline 10 ns",
        ),
        (
            lambda: pipeline(
                timer("a", 10, wcet_ns=3, deadline_ns=3), timer("b", 10, wcet_ns=3, deadline_ns=3)
            ),
            r"stages\.[ab]: no table found: not by non-preemptive EDF, nor in \d+ tries",
        ),
    ],
)
def test_why_there_is_none_is_told(spec, message):
    with pytest.raises(SpecError, match=message):
        planned(spec())


def test_a_table_in_which_jitter_would_make_a_job_late_is_never_given_out():
    """Each job fits where it is put, but track counts from when scan is done at the earliest."""
    spec = pipeline(
        timer("beat", 50, wcet_ns=9, bcet_ns=9, deadline_ns=80),
        stage("scan", "beat", wcet_ns=21, deadline_ns=144, jitter_ns=30),
        stage("track", "scan", device="gpu", wcet_ns=15, deadline_ns=89, jitter_ns=5),
        devices=(device(), device("gpu")),
    )
    with pytest.raises(SpecError, match=r"stages\.track: no table found"):
        planned(spec)


@pytest.mark.parametrize(
    ("camera_ns", "sync"),
    [
        (10, SyncSpec(tolerance_ns=2, timeout_ns=40)),  # every second message makes no set
        (20, SyncSpec(tolerance_ns=2, timeout_ns=1)),  # the detection comes too late for it
    ],
)
def test_sets_that_are_not_complete_every_time_are_refused(camera_ns, sync):
    spec = pipeline(
        stage("scan", "lidar"),
        stage("fuse", "scan", "camera", sync=sync),
        sources=(
            SourceSpec(name="lidar", type="lidar", period_ns=20),
            SourceSpec(name="camera", type="camera", period_ns=camera_ns),
        ),
    )
    with pytest.raises(
        SpecError, match=r"stages\.fuse\.sync: a table needs sets that are complete"
    ):
        planned(spec)


def test_what_is_only_sampled_needs_no_rate():
    spec = pipeline(
        timer("beat", 20, inputs=(InputSpec(name="x", source="gnss"),)),
        sources=(SourceSpec(name="gnss", type="gnss"),),
    )
    assert find_table(spec).starts_ns("beat") == (0,)


def test_sets_that_are_complete_have_a_table():
    spec = pipeline(
        stage("scan", "lidar", wcet_ns=3),
        stage("fuse", "scan", "camera", sync=SyncSpec(tolerance_ns=2, timeout_ns=9)),
        sources=(
            SourceSpec(name="lidar", type="lidar", period_ns=20),
            SourceSpec(name="camera", type="camera", period_ns=20),
        ),
    )
    result = run(planned(spec))
    assert [(j.start_ns % 20, j.outcome) for j in result.jobs_of("fuse")] == [(3, "met")] * 5


def test_a_given_table_that_is_wrong_is_refused_with_its_row():
    rows = (TableRow(task="a", starts_ns=(0,)), TableRow(task="b", starts_ns=(1,)))
    spec = pipeline(timer("a"), timer("b"), table=TableSpec(cycle_ns=100, rows=rows))
    with pytest.raises(SpecError, match=r"table\.starts\.b: no slot of cpu is free at 1 ns"):
        planned(spec)


def test_the_largest_sets_are_planned_in_bounded_work():
    stages = [timer(f"t{n}", 1000 * (1 + n % 4), wcet_ns=1 + n % 7) for n in range(200)]
    spec = pipeline(
        *(replace(s, deadline_ns=900) for s in stages), devices=(DeviceSpec(name="cpu", slots=2),)
    )
    assert table_faults(spec, find_table(spec)) == []

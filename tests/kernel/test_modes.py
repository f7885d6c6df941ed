"""Modes: what the kernel does when another level of the ladder is asked for.

By example first; then what must hold for random ladders, whenever a mode is asked for.
"""

from dataclasses import replace
from itertools import pairwise

from builder import Bench, device, sampled, stage, timer
from hypothesis import given
from tracing import World, drive, restored_half_way, walk

from avrt.model.commands import Dispatch, EnterMode, Record, Resume, Vote
from avrt.model.events import DeviceLost, Hung, ModeRequested, StreamBack
from avrt.model.ladder import LadderSpec, LevelSpec, StageLevel, VariantSpec
from avrt.model.levels import at_level
from avrt.model.records import (
    ChainBroken,
    ChainRecord,
    JobRecord,
    MissRecord,
    ModeRecord,
    SyncRecord,
)
from avrt.model.spec import ChainSpec, Criticality, RedundancySpec, SyncSpec
from pipelines import Limits, examples, laddered

TWO = (device("gpu"), device("cpu"))
LIGHT = VariantSpec(name="light", device="cpu", wcet_ns=1)
DOWN = ModeRequested("down", "smoke")
UP = ModeRequested("up", "clear")


def ladder(*stages, down=(), without=(), critical=("see",), **keys):
    """A bench whose pipeline has the levels `up`, as declared, and `down`."""
    levels = (
        LevelSpec(name="up"),
        LevelSpec(name="down", without=tuple(without), stages=tuple(down)),
    )
    return Bench(*stages, ladder=LadderSpec(levels=levels, critical=critical), **keys)


def test_a_pipeline_with_a_ladder_begins_in_its_first_level():
    bench = ladder(timer("see"))
    bench.at(0, UP)
    assert bench.records(ModeRecord) == [ModeRecord("up", 0, "clear", entered=False)]
    assert bench.commands(EnterMode) == []


def test_a_mode_is_entered_once_and_told_before_the_first_dispatch_under_it():
    down = [StageLevel(stage="see", variant="light")]
    bench = ladder(stage("see", "lidar", device="gpu", variants=(LIGHT,)), down=down, devices=TWO)
    bench.arrive(0, "lidar", DOWN)
    assert bench.records(ModeRecord) == [ModeRecord("down", 0, "smoke", entered=True)]
    kinds = [type(command) for command in bench.commands(EnterMode, Dispatch)]
    assert kinds == [EnterMode, Dispatch]
    assert (bench.dispatch().variant, bench.dispatch().device) == ("light", "cpu")
    bench.at(1, DOWN)
    assert [r.entered for r in bench.records(ModeRecord)] == [False]


def test_what_runs_goes_on_and_what_waits_takes_the_variant():
    down = [StageLevel(stage="see", variant="light")]
    bench = ladder(stage("see", "lidar", device="gpu", variants=(LIGHT,)), down=down, devices=TWO)
    bench.arrive(0, "lidar")
    bench.arrive(1, "lidar", DOWN)
    assert bench.dispatched() == []
    bench.complete(2, 0)
    assert bench.outcomes() == [(0, "met")]
    assert bench.published() == [0]
    assert (bench.dispatch().variant, bench.dispatch().device) == ("light", "cpu")


def test_a_job_that_waits_for_a_slot_elsewhere_leaves_with_its_stream():
    down = [StageLevel(stage="see", variant="light")]
    see = stage("see", "lidar", device="gpu", variants=(LIGHT,))
    bench = ladder(timer("busy", device="gpu"), see, down=down, devices=TWO)
    bench.at(0)
    bench.arrive(1, "lidar")
    assert bench.dispatched() == []
    bench.at(1, DOWN)
    assert bench.dispatch().device == "cpu"


def test_jobs_of_what_is_left_out_are_shed_and_none_is_released():
    bench = ladder(
        stage("see", "lidar"), timer("beat", 5), stage("log", "lidar"), without=["beat", "log"]
    )
    bench.arrive(0, "lidar")
    assert bench.dispatched() == ["see"]
    bench.at(1, DOWN)
    assert bench.outcomes() == [(1, "shed", "mode"), (2, "shed", "mode")]
    bench.arrive(10, "lidar")
    assert bench.records(JobRecord) == []
    bench.complete(11, 0)
    assert bench.dispatched() == ["see"]
    bench.at(12, UP)
    bench.at(15)
    bench.complete(16, 3)
    assert bench.dispatched() == ["beat"]


def test_a_timer_keeps_its_next_release_and_the_new_period_counts_from_there():
    down = [StageLevel(stage="see", period_ns=7)]
    bench = ladder(timer("see", 5, wcet_ns=1), down=down)
    released = []
    for at_ns in range(30):
        bench.at(at_ns, *([DOWN] if at_ns == 6 else [UP] if at_ns == 18 else []))
        for command in bench.commands(Dispatch):
            released.append(command.release_ns)
            bench.complete(at_ns, command.job)
    assert released == [0, 5, 10, 17, 24, 29]


def test_of_the_messages_of_its_trigger_it_takes_each_nth_from_the_first_one_on():
    down = [StageLevel(stage="see", every=3)]
    bench = ladder(stage("see", "lidar"), down=down)
    taken = []
    for at_ns in range(0, 120, 10):
        bench.arrive(at_ns, "lidar", *([DOWN] if at_ns == 20 else []))
        for command in bench.commands(Dispatch):
            taken.append(at_ns)
            bench.complete(at_ns, command.job)
    assert taken == [0, 10, 20, 30, 60, 90]


def test_a_stage_may_leave_out_messages_without_a_ladder():
    bench = Bench(stage("see", "lidar", every=2))
    for at_ns in range(0, 40, 10):
        bench.arrive(at_ns, "lidar")
        bench.complete(at_ns, *(c.job for c in bench.commands(Dispatch)))
    assert [r.release_ns for r in bench.all_records(JobRecord)] == [0, 20]


def test_what_is_late_already_and_has_not_begun_is_shed_when_a_level_is_entered():
    bench = ladder(stage("see", "lidar", deadline_ns=10), down=[StageLevel(stage="see", every=1)])
    for at_ns in (0, 1, 12):
        bench.arrive(at_ns, "lidar")
    bench.at(13, DOWN)
    assert bench.outcomes() == [(1, "shed", "mode")]
    bench.complete(14, 0)
    assert bench.dispatch().job == 2


def test_what_a_stage_said_before_it_was_left_out_is_not_sampled():
    see = stage("see", "lidar", sampled("log", optional=True))
    bench = ladder(stage("log", "radar"), see, without=["log"])
    bench.arrive(0, "radar")
    bench.complete(1, 0)
    bench.at(2, DOWN)
    bench.arrive(3, "lidar")
    assert bench.dispatch().inputs[1] is None


def test_promises_of_a_chain_through_what_is_left_out_are_suspended_and_begin_anew():
    chain = ChainSpec(name="c", path=("lidar", "see"), reaction_ns=30, age_ns=30)
    bench = ladder(
        stage("see", "lidar"),
        stage("stop", "lidar"),
        without=["see"],
        critical=("stop",),
        chains=[chain],
        devices=(device(slots=2),),
    )
    bench.arrive(0, "lidar")
    bench.complete(1, 0, 1)
    bench.at(2, DOWN)
    bench.at(100)
    assert bench.all_records(ChainBroken) == []
    bench.arrive(101, "lidar", UP)  # taken in before the mode is
    bench.complete(102, 2)
    bench.arrive(110, "lidar")
    bench.complete(111, 3, 4)
    (record,) = bench.records(ChainRecord)
    assert (record.path_ns, record.reaction_ns, record.age_ns) == (1, None, None)
    bench.at(141)
    assert [r.promise for r in bench.records(ChainBroken)] == ["reaction", "age"]


def test_a_stream_leaves_its_lost_device_for_that_of_its_variant():
    down = [StageLevel(stage="see", variant="light")]
    bench = ladder(stage("see", "lidar", device="gpu", variants=(LIGHT,)), down=down, devices=TWO)
    bench.at(0, DeviceLost("gpu"))
    bench.arrive(1, "lidar")
    assert bench.outcomes() == [(0, "aborted", "lost")]
    bench.at(2, DOWN)
    bench.arrive(3, "lidar")
    assert bench.dispatch().device == "cpu"
    bench.complete(4, 1)
    bench.at(5, UP)
    bench.arrive(6, "lidar")
    assert bench.outcomes() == [(2, "aborted", "lost")]


def test_a_stream_that_hung_stays_lost():
    down = [StageLevel(stage="see", variant="light")]
    bench = ladder(stage("see", "lidar", device="gpu", variants=(LIGHT,)), down=down, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(1, Hung(0))
    bench.at(2, DOWN)
    bench.arrive(3, "lidar")
    assert bench.outcomes() == [(1, "aborted", "lost")]


def test_priorities_follow_the_mode():
    down = [StageLevel(stage="slow", period_ns=3)]
    bench = ladder(timer("see", 10), timer("slow", 30), down=down, policy="rm", devices=(device(),))
    bench.at(0)
    bench.complete(2, 0)
    bench.complete(4, 1)
    bench.at(10, DOWN)
    bench.complete(12, 2)
    bench.at(30)
    assert bench.dispatched() == ["slow"]


def test_work_of_a_stage_that_is_left_out_goes_on_where_its_own_device_is_lost():
    down = [StageLevel(stage="see", variant="light")]
    levels = (
        LevelSpec(name="up"),
        LevelSpec(name="down", stages=tuple(down)),
        LevelSpec(name="stop", without=("see",)),
    )
    see = stage("see", "lidar", device="gpu", variants=(LIGHT,))
    spec = LadderSpec(levels=levels, critical=("see",))
    bench = Bench(see, timer("beat", device="cpu"), devices=TWO, ladder=spec)
    bench.at(0, DeviceLost("gpu"))
    bench.complete(2, 0)
    bench.at(2, DOWN)
    bench.arrive(3, "lidar")
    bench.at(4, ModeRequested("stop", "order"))
    assert bench.outcomes() == []
    bench.complete(5, 1)
    assert bench.outcomes() == [(1, "met")]


def test_a_level_with_one_copy_is_not_voted_on_and_more_are_again_above():
    triplets = RedundancySpec(copies=3)
    down = [StageLevel(stage="see", copies=1)]
    see = stage("see", "lidar", redundancy=triplets, deadline_ns=100)
    bench = ladder(see, down=down, devices=(device(slots=3),))
    bench.at(0, DOWN)
    bench.arrive(1, "lidar")
    assert bench.dispatched() == ["see.0"]
    bench.complete(2, 0)
    assert bench.published() == [0]
    assert bench.commands(Vote) == []
    bench.at(3, UP)
    bench.arrive(4, "lidar")
    assert bench.dispatched() == ["see.0", "see.1", "see.2"]
    bench.complete(5, 1, 2)
    assert [vote.copies for vote in bench.commands(Vote)] == [3]


def test_of_two_copies_of_three_both_must_agree():
    down = [StageLevel(stage="see", copies=2)]
    see = stage("see", "lidar", redundancy=RedundancySpec(copies=3), deadline_ns=100)
    bench = ladder(see, down=down, devices=(device(slots=3),))
    bench.at(0, DOWN)
    bench.arrive(1, "lidar")
    assert bench.dispatched() == ["see.0", "see.1"]
    bench.complete(2, 0)
    assert bench.commands(Vote) == []
    bench.complete(3, 1)
    (vote,) = bench.commands(Vote)
    assert (vote.copies, vote.quorum, vote.jobs) == (2, 2, (0, 1))


def test_each_copy_runs_on_its_own_device_and_goes_on_on_its_fallback():
    homes = ("a", "b", "c")
    devices = (device("a", fallback="b"), device("b", slots=2), device("c"))
    spread = RedundancySpec(copies=3, devices=homes)
    see = stage("see", "lidar", device="a", redundancy=spread, deadline_ns=100)
    bench = Bench(see, devices=devices)
    bench.arrive(1, "lidar")
    assert [(d.task, d.device) for d in bench.commands(Dispatch)] == [
        ("see.0", "a"), ("see.1", "b"), ("see.2", "c"),
    ]  # fmt: skip
    bench.complete(5, 0, 1, 2)
    bench.at(6, DeviceLost("a"))
    bench.arrive(7, "lidar")
    assert [(d.task, d.device) for d in bench.commands(Dispatch)] == [
        ("see.0", "b"), ("see.1", "b"), ("see.2", "c"),
    ]  # fmt: skip


# Whatever is asked for


def mode_at(trace):
    """Yield the name of the mode under which each command is made."""
    mode = trace.spec.ladder.levels[0].name
    for ledger, call, command in walk(trace):
        if isinstance(command, EnterMode):
            mode = command.mode
        yield ledger, call, command, mode


def runs_of(spec):
    """By level, the stages that run at it, as they do."""
    return {
        level.name: {stage.name: stage for stage in at_level(spec, level).stages}
        for level in spec.ladder.levels
    }


@examples(40)
@given(laddered())
def test_every_released_job_ends_exactly_once_under_a_ladder(scenario):
    for grain in (1, 4):
        world = World(scenario, grain)
        trace = world.run()
        records = trace.records(JobRecord)
        assert sorted(r.job for r in records) == list(range(len(records)))
        assert trace.working == ()
        assert not any(task.busy for task in world.kernel._tasks.values())
        assert not any(world.kernel._state.underway.values())


@examples(40)
@given(laddered())
def test_what_is_left_out_neither_starts_nor_is_released(scenario):
    trace = drive(scenario)
    runs = runs_of(trace.spec)
    first_under = {}
    for _, call, command, mode in mode_at(trace):
        if isinstance(command, Dispatch) and command.segment == 0:
            assert trace.stage_of(command.task).name in runs[mode]
        first_under.setdefault(mode, call.at_ns)
    for job in trace.jobs().values():
        if job.reason == "mode":
            assert job.start_ns is None
            left_out = any(job.stage not in stages for stages in runs.values())
            assert left_out or job.due_ns < job.end_ns


@examples(40)
@given(laddered())
def test_each_job_starts_as_the_mode_says(scenario):
    trace = drive(scenario)
    levels = {level.name: level for level in trace.spec.ladder.levels}
    for _, _, command, mode in mode_at(trace):
        if isinstance(command, Dispatch):
            said = {item.stage: item.variant for item in levels[mode].stages}
            assert command.variant == said.get(trace.stage_of(command.task).name, "")


@examples(40)
@given(laddered())
def test_a_mode_ends_no_work(scenario):
    """What runs then goes on: its device has not gone."""
    for call in drive(scenario).calls:
        if call.events and all(isinstance(event, ModeRequested) for event in call.events):
            ended = [c.record for c in call.commands if isinstance(c, Record)]
            jobs = [record for record in ended if isinstance(record, JobRecord)]
            own = [job for job in jobs if job.reason in {"mode", "lost"}]
            assert all(job.start_ns is None for job in own)


@examples(40)
@given(laddered(Limits(kinds=("timer",))))
def test_no_timer_release_comes_twice_or_closer_than_the_shortest_period(scenario):
    trace = drive(scenario)
    for beat in trace.spec.stages:
        if beat.period_ns is None:
            continue
        periods = [s[beat.name].period_ns for s in runs_of(trace.spec).values() if beat.name in s]
        shortest_ns = min(beat.period_ns, *periods)
        released = sorted({j.release_ns for j in trace.jobs().values() if j.stage == beat.name})
        assert all(b - a >= shortest_ns for a, b in pairwise(released))


@examples(30)
@given(laddered())
def test_never_more_jobs_than_slots_under_a_ladder(scenario):
    trace = drive(scenario)
    slots = {d.name: d.slots for d in trace.spec.devices}
    for ledger, _, command in walk(trace):
        if isinstance(command, Dispatch):
            assert command.task not in ledger.stream
        if isinstance(command, Dispatch | Resume):
            place = command.device if isinstance(command, Dispatch) else ledger.device[command.job]
            assert len(ledger.on(place)) < slots[place]


@examples(25)
@given(laddered())
def test_a_kernel_restored_at_any_call_goes_on_alike_under_a_ladder(scenario):
    trace = drive(scenario)
    assert [call.commands for call in trace.calls] == restored_half_way(trace)


@examples(25)
@given(laddered(Limits(endless=False)))
def test_modes_that_change_nothing_change_no_job(scenario):
    """A ladder all of whose levels are the pipeline as declared is none."""
    levels = tuple(LevelSpec(name=level.name) for level in scenario.spec.ladder.levels)
    spec = replace(scenario.spec, ladder=replace(scenario.spec.ladder, levels=levels))
    plain = replace(spec, ladder=None)
    assert all(stage.every == 1 for stage in plain.stages)
    trace, other = drive(replace(scenario, spec=spec)), drive(replace(scenario, spec=plain))
    if not any(job.reason == "mode" for job in trace.jobs().values()):
        assert trace.jobs() == other.jobs()


# What was found wrong


SEE_LIGHT = [StageLevel(stage="see", variant="light")]


def on_gpu(**keys):
    """A stage on the GPU whose light variant runs on the processor."""
    return stage("see", "lidar", device="gpu", variants=(LIGHT,), **keys)


def test_a_hung_stream_belongs_where_the_mode_says_when_it_is_back():
    bench = ladder(on_gpu(), down=SEE_LIGHT, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(1, Hung(0))
    bench.at(2, DOWN)
    bench.at(3, StreamBack("see"))
    bench.arrive(4, "lidar")
    assert (bench.dispatch().variant, bench.dispatch().device) == ("light", "cpu")


def test_a_hung_stream_stays_lost_though_its_device_is_lost_too():
    bench = ladder(on_gpu(), down=SEE_LIGHT, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(1, Hung(0))
    bench.at(2, DeviceLost("gpu"))
    bench.at(3, DOWN)
    bench.arrive(4, "lidar")
    assert bench.dispatched() == []


def test_what_runs_elsewhere_is_not_lost_with_the_device_that_is_waited_for():
    busy = timer("busy", 10, offset_ns=5, device="gpu")
    bench = ladder(on_gpu(wcet_ns=20, deadline_ns=50), busy, down=SEE_LIGHT, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(1, DOWN)
    bench.at(2, DeviceLost("cpu"))
    assert bench.outcomes() == []
    bench.at(5)
    assert bench.dispatched() == []
    bench.complete(6, 0)
    assert bench.outcomes() == [(0, "met")]


def test_what_runs_is_lost_with_its_device_though_its_stream_is_elsewhere():
    bench = ladder(on_gpu(wcet_ns=20, deadline_ns=50), down=SEE_LIGHT, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(1, DeviceLost("cpu"))
    bench.at(2, DOWN)
    bench.at(3, DeviceLost("gpu"))
    assert bench.outcomes() == [(0, "aborted", "lost")]
    assert bench.kernel.working_jobs == ()


def test_a_preempted_job_keeps_the_budget_of_its_start():
    light = VariantSpec(name="light", wcet_ns=3)
    keys = {"wcet_ns": 10, "deadline_ns": 100, "on_overrun": "abort"}
    bench = ladder(
        timer("see", 1000, variants=(light,), **keys),
        stage("high", "lidar", wcet_ns=1, deadline_ns=5),
        down=SEE_LIGHT,
        devices=(device("cpu", preemptive=True),),
    )
    bench.at(0)
    bench.arrive(2, "lidar")
    bench.at(2, DOWN)
    bench.complete(3, 1)
    bench.at(4)
    assert bench.outcomes() == []
    bench.at(11)
    assert bench.outcomes() == [(0, "aborted", "budget")]


def test_a_displaced_job_is_shed_by_the_latest_start_of_the_mode():
    light = VariantSpec(name="light", wcet_ns=1)
    high = stage("high", "radar", wcet_ns=8, deadline_ns=35, criticality=Criticality.ASIL_D)
    bench = ladder(
        stage("see", "lidar", wcet_ns=10, deadline_ns=30, variants=(light,)),
        high,
        timer("block", 1000, wcet_ns=20, deadline_ns=25),
        down=SEE_LIGHT,
    )
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.arrive(1, "radar")
    bench.complete(20, 0)
    bench.at(21, DOWN)
    bench.at(22)
    assert bench.outcomes() == []
    bench.at(31)
    assert [(o, r) for _, o, *r in bench.outcomes() if o == "shed"] == [("shed", ["overload"])]


def test_who_is_urgent_follows_the_mode():
    light, most = VariantSpec(name="light", wcet_ns=1), Criticality.ASIL_D
    see = stage("see", "lidar", wcet_ns=12, deadline_ns=40, criticality=most, variants=(light,))
    block = timer("block", 1000, wcet_ns=20, deadline_ns=25, criticality=most)
    low = stage("low", "radar", wcet_ns=8, deadline_ns=30)
    bench = ladder(see, low, block, down=SEE_LIGHT)
    bench.at(0)
    bench.arrive(1, "lidar")
    bench.arrive(1, "radar")
    bench.at(5, DOWN)
    bench.complete(22, 0)
    assert bench.dispatched() == ["low"]


def test_what_a_stage_says_at_its_end_when_it_is_left_out_is_not_sampled():
    see = stage("see", "lidar", sampled("log", optional=True))
    bench = ladder(stage("log", "radar"), see, without=["log"])
    bench.arrive(0, "radar")
    bench.at(1, DOWN)
    bench.complete(2, 0)
    bench.arrive(1003, "lidar")
    assert bench.dispatch().inputs[1] is None


def test_a_message_from_before_breaks_no_promise_of_a_chain_that_began_anew():
    chain = ChainSpec(name="c", path=("lidar", "see"), reaction_ns=30, age_ns=30)
    bench = ladder(
        stage("see", "lidar", wcet_ns=100, deadline_ns=200),
        stage("stop", "radar"),
        without=["see"],
        critical=("stop",),
        chains=[chain],
        devices=(device(slots=2),),
    )
    bench.arrive(0, "lidar")
    bench.at(2, DOWN)
    bench.at(90, UP)
    bench.complete(100, 0)
    bench.at(140)
    assert bench.all_records(ChainBroken) == []
    assert bench.all_records(ChainRecord) == []


def test_a_set_does_not_wait_for_what_the_level_leaves_out():
    optional = sampled("log", optional=True)
    sync = SyncSpec(tolerance_ns=5, timeout_ns=1000)
    see = stage("see", sampled("lidar"), sampled("camera"), optional, sync=sync)
    bench = ladder(stage("log", "radar"), see, without=["log"])
    bench.at(0, DOWN)
    bench.arrive(10, "lidar")
    bench.arrive(10, "camera")
    assert bench.dispatched() == ["see"]
    assert bench.records(SyncRecord) == []


def test_a_miss_is_explained_by_the_device_on_which_the_job_runs():
    other = timer("other", device="cpu", deadline_ns=50)
    bench = ladder(on_gpu(), other, down=SEE_LIGHT, devices=TWO)
    bench.arrive(0, "lidar")
    bench.at(2, DOWN)
    bench.at(10)
    (miss,) = bench.records(MissRecord)
    assert {interval.kind for interval in miss.intervals} == {"running"}

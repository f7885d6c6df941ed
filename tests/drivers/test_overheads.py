"""What scheduling costs: who pays what, and that nothing changes where it costs nothing."""

import pytest
from builder import Bench, device, timer
from hypothesis import given

from avrt.drivers.overheads import ChargedLoop, simulation_loop
from avrt.drivers.simulate import Pretended, periodic_arrivals, simulate
from avrt.drivers.virtual import VirtualLoop
from avrt.kernel import Kernel
from avrt.logs.record.journal import Journal
from avrt.model.events import DeviceBack, DeviceLost
from avrt.model.scenario import OverheadSpec
from avrt.model.spec import SegmentSpec
from pipelines import Limits, examples, scenarios

PREEMPTIVE = (device(preemptive=True),)
ALL = OverheadSpec(release_ns=1, decision_ns=10, switch_ns=100, launch_ns=1000)


def charged(bench, until_ns, overheads=ALL, name="cpu", **more):
    """Return (task, index, start, end, execution) of every job, in the order they ended."""
    result = simulate(bench.spec, until_ns=until_ns, overheads={name: overheads}, **more)
    return [(j.task, j.index, j.start_ns, j.end_ns, j.executed_ns) for j in result.jobs]


def parted(name, period_ns, *parts, **keys):
    """A timer stage of segments, each a device and a wcet."""
    segments = tuple(SegmentSpec(device=place, wcet_ns=wcet) for place, wcet in parts)
    whole_ns = sum(wcet for _, wcet in parts)
    return timer(name, period_ns, segments=segments, wcet_ns=whole_ns, **keys)


def low_and_high():
    """A long job, preempted at 5 by a short one, whose next one is far away."""
    return Bench(
        timer("low", 100_000, wcet_ns=20, deadline_ns=90_000, priority=2),
        timer("high", 100_000, wcet_ns=50, deadline_ns=9_000, priority=1, offset_ns=5),
        devices=PREEMPTIVE,
        policy="fp",
    )


def test_a_first_start_pays_release_decision_launch_and_switch():
    bench = Bench(timer("beat", 10_000, wcet_ns=7, deadline_ns=9_000))
    assert charged(bench, 20_000) == [("beat", 0, 0, 1118, 1118), ("beat", 1, 10_000, 11_118, 1118)]


def test_a_resume_pays_decision_and_switch():
    high, low = charged(low_and_high(), 90_000)
    assert high == ("high", 0, 5, 5 + 1161, 1161)
    assert low == ("low", 0, 0, 1111 + 20 + 1161 + 110, 1111 + 20 + 110)


def test_what_is_left_of_a_resume_is_dropped_when_the_job_is_preempted_again():
    costs = OverheadSpec(switch_ns=30)
    bench = Bench(
        timer("low", 1000, wcet_ns=50, deadline_ns=900, priority=2),
        timer("high", 50, wcet_ns=10, deadline_ns=45, priority=1, offset_ns=40),
        devices=PREEMPTIVE,
        policy="fp",
    )
    jobs = charged(bench, 200, costs)
    low = next(job for job in jobs if job[0] == "low")
    # 30 + 10 | 40: high | 80: 10 of the switch | 90: high | 130: 10 of it | 140: high | 180: ...
    assert [job[2] for job in jobs if job[0] == "high"] == [40, 90, 140, 190]
    assert low == ("low", 0, 0, 230 + 30 + 40, 40 + 10 + 10 + 10 + 30 + 40)


@pytest.mark.parametrize(
    ("between", "more_ns"),
    [((), 1010), ((timer("other", 100_000, offset_ns=3, wcet_ns=1, deadline_ns=8),), 1110)],
)
def test_a_segment_that_keeps_its_slot_pays_no_switch(between, more_ns):
    work = parted("work", 100_000, ("cpu", 10), ("cpu", 10), deadline_ns=80_000)
    jobs = charged(Bench(work, *between), 90_000)
    (found,) = [job for job in jobs if job[0] == "work"]
    assert found[4] == 1111 + 20 + more_ns


def test_each_segment_pays_where_it_runs():
    work = parted("work", 100_000, ("cpu", 10), ("gpu", 10), ("cpu", 10), deadline_ns=80_000)
    bench = Bench(work, devices=(device(), device("gpu")))
    assert charged(bench, 90_000)[0][4] == 1111 + 30 + 1110
    assert charged(bench, 90_000, name="gpu")[0][4] == 30 + 1110


def test_a_device_that_is_not_named_costs_nothing():
    bench = Bench(timer("beat", 100, wcet_ns=7), devices=(device(), device("gpu")))
    assert charged(bench, 90, name="gpu") == [("beat", 0, 0, 7, 7)]


def test_overheads_are_those_of_the_fallback_where_the_job_runs():
    bench = Bench(timer("beat", 5000), devices=(device(fallback="gpu"), device("gpu")))
    feed = [(4000, DeviceLost("cpu")), (9000, DeviceBack("cpu"))]
    costs = charged(bench, 14_000, name="gpu", feed=feed)
    assert [job[4] for job in costs] == [2, 1113, 2]


def test_without_overheads_the_loop_is_the_plain_one():
    spec = Bench(timer("beat")).spec

    def kind(overheads):
        worker = Pretended(lambda _command, _at_ns: 1, overheads)
        return type(simulation_loop(spec, iter(()), worker, Journal(), 1))

    assert kind({}) is VirtualLoop
    assert kind({"cpu": ALL}) is ChargedLoop


def run(spec, scenario, overheads, kind=ChargedLoop):
    """Return the journal of a random scenario, and what the loop still knows of its jobs."""
    lines = []
    journal = Journal(lambda _at_ns, line: lines.append(line))
    tasks = {name: place for place, name in enumerate(t for s in spec.stages for t in s.task_names)}
    worker = Pretended(lambda c, _at_ns: scenario.cost_ns(tasks[c.task], c.index), overheads)
    feed = periodic_arrivals(spec, scenario.until_ns)
    loop = kind(spec, Kernel(spec), feed, worker, journal, until_ns=scenario.until_ns)
    loop.run()
    kept = () if kind is VirtualLoop else (loop._devices, loop._kept, loop._own_ns)
    return lines, kept


@given(scenarios(Limits(recorded=False, failures=False)))
@examples(20)
def test_overheads_of_zero_change_no_journal(scenario):
    nothing = {d.name: OverheadSpec() for d in scenario.spec.devices}
    plain, _ = run(scenario.spec, scenario, {}, VirtualLoop)
    assert run(scenario.spec, scenario, nothing)[0] == plain


@given(scenarios(Limits(recorded=False, failures=False)))
@examples(30)
def test_nothing_is_kept_of_jobs_that_are_over(scenario):
    costs = {
        d.name: OverheadSpec(release_ns=1, decision_ns=2, switch_ns=1, launch_ns=3)
        for d in scenario.spec.devices
    }
    assert [dict(kept) for kept in run(scenario.spec, scenario, costs)[1]] == [{}, {}, {}]

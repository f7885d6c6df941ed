"""Jobs of several segments: properties over random pipelines, and an independent simulator.

The oracle lies beside the repository, in shared/oracles; without it its tests are skipped.
"""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import World, drive, walk

from avrt.drivers.simulate import simulate
from avrt.errors import SpecError
from avrt.kernel import Kernel
from avrt.model.commands import Dispatch
from avrt.model.events import Completed, Failed, Hung, SegmentEnded
from avrt.model.graph import check
from avrt.model.records import JobRecord, MissRecord
from avrt.model.spec import DeviceSpec, PipelineSpec, SegmentSpec, StageSpec
from pipelines import Limits, Picker, examples, scenarios

ORACLE = Path(__file__).parents[3] / "shared" / "oracles" / "segsim.py"
HORIZON = 60


@st.composite
def segmented(draw, limits=None, waits=("suspend", "spin")):
    """Random scenarios in which about half of the stages have two segments or more."""
    scenario = draw(scenarios(limits or Limits()))
    pick = Picker(draw, 40)
    spec = scenario.spec
    stages = tuple(
        _parted(pick, stage, spec.devices, waits) if pick((False, True)) else stage
        for stage in spec.stages
    )
    spec = replace(spec, stages=stages)
    try:
        check(spec)
    except SpecError:  # devices kept for each other in a ring
        spec = replace(spec, stages=tuple(_suspending(stage) for stage in stages))
        check(spec)
    return replace(scenario, spec=spec)


def _parted(pick, stage, devices, waits):
    parts = [SegmentSpec(device=stage.device, wcet_ns=pick.integer(1, 4))]
    host = stage.device
    for _ in range(pick.integer(1, 3)):
        device, wait = pick(devices).name, pick(waits)
        wait = "suspend" if device == host else wait
        host = device if wait == "suspend" else host
        parts.append(SegmentSpec(device=device, wcet_ns=pick.integer(1, 4), wait=wait))
    redundancy = stage.redundancy and replace(stage.redundancy, devices=())
    return replace(
        stage,
        segments=tuple(parts),
        wcet_ns=sum(p.wcet_ns for p in parts),
        redundancy=redundancy,
    )


def _suspending(stage):
    return replace(stage, segments=tuple(replace(s, wait="suspend") for s in stage.segments))


ENDS = (SegmentEnded, Completed, Failed, Hung)


@examples(60)
@given(segmented())
def test_every_job_ends_once_and_nothing_stays_on_a_slot(scenario):
    world = World(scenario)
    trace = world.run()
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    assert trace.working == ()
    assert not any(world.kernel._state.underway.values())
    for device in world.kernel._devices.values():
        assert device.free_slots == device.slots
        assert device.running == []


@examples(30)
@given(segmented())
def test_a_driver_that_wakes_late_loses_no_job_either(scenario):
    trace = drive(scenario, grain=4)
    records = trace.records(JobRecord)
    assert sorted(r.job for r in records) == list(range(len(records)))
    assert trace.working == ()


@examples(40)
@given(segmented())
def test_segments_come_in_order_and_none_before_the_one_before_has_ended(scenario):
    trace = drive(scenario)
    next_segment, running = {}, set()
    for call in trace.calls:
        for event in call.events:
            if isinstance(event, ENDS):
                running.discard(event.job)
        for command in call.commands:
            if isinstance(command, Dispatch):
                assert command.segment == next_segment.get(command.job, 0)
                assert command.job not in running
                next_segment[command.job] = command.segment + 1
                running.add(command.job)
    parts = {stage.name: max(1, len(stage.segments)) for stage in trace.spec.stages}
    for record in trace.records(JobRecord):
        if record.outcome in {"met", "late"}:
            assert next_segment[record.job] == parts[record.stage]


class Holding:
    """Which devices the work of each job holds, from events and commands alone."""

    def __init__(self, trace):
        self.trace = trace
        self.stages = {}
        self.begun = {}
        self.running = {}

    def take(self, call):
        for event in call.events:
            if isinstance(event, ENDS):
                del self.running[event.job]
                if not isinstance(event, SegmentEnded):
                    del self.begun[event.job]
        for command in call.commands:
            if isinstance(command, Dispatch):
                self.stages[command.job] = self.trace.stage_of(command.task)
                self.begun[command.job] = command.segment + 1
                self.running[command.job] = command.device
        ended = self.trace.records(JobRecord, until=call)
        for job in {record.job for record in ended} - self.running.keys():
            self.begun.pop(job, None)

    def count(self, device):
        """How many slots of a device are held."""
        kept = [self._host(job) for job in self.begun]
        return [*self.running.values(), *kept].count(device)

    def _host(self, job):
        """The device that a job keeps by spinning, for its present segment or for the next."""
        segments = self.stages[job].segments
        place = self.begun[job] - (job in self.running)
        if not segments or segments[place].wait == "suspend":
            return None
        return next(s.device for s in reversed(segments[:place]) if s.wait == "suspend")


@examples(40)
@given(segmented(Limits(faults=False, preemptive=(False,))))
def test_segments_and_those_that_spin_never_hold_more_than_the_slots(scenario):
    trace = drive(scenario)
    holding = Holding(trace)
    for call in trace.calls:
        holding.take(call)
        for device in trace.spec.devices:
            assert holding.count(device.name) <= device.slots


@examples(40)
@given(segmented())
def test_the_intervals_of_a_miss_sum_to_the_time_since_release(scenario):
    trace = drive(scenario)
    for miss in trace.records(MissRecord):
        edges = [miss.release_ns, *(i.end_ns for i in miss.intervals)]
        assert [i.start_ns for i in miss.intervals] == edges[:-1]
        assert edges[-1] == miss.at_ns


@examples(40)
@given(segmented(Limits(faults=False, criticality=(0,)), waits=("suspend",)))
def test_no_slot_stays_free_while_a_job_waits_for_it(scenario):
    trace = drive(scenario)
    for ledger, call, command in walk(trace):
        if command is not None or call.wakeup_ns == call.at_ns:
            continue
        for device in trace.spec.devices:
            if len(ledger.on(device.name)) < device.slots:
                assert _waiting(trace, ledger, call, device.name) == []


def _waiting(trace, ledger, call, device):
    """Jobs between two segments whose next one runs on this device."""
    return [
        job
        for task, job in ledger.stream.items()
        if job not in ledger.running
        and job not in ledger.paused
        and job not in ledger.ended
        and trace.stage_of(task).segments
        and _next_device(trace, call, task, job) == device
    ]


def _next_device(trace, call, task, job):
    until = trace.calls.index(call) + 1
    commands = [c for other in trace.calls[:until] for c in other.commands]
    begun = sum(isinstance(c, Dispatch) and c.job == job for c in commands)
    return trace.stage_of(task).segments[begun].device


@examples(30)
@given(scenarios())
def test_one_segment_is_no_segment(scenario):
    whole = tuple(
        replace(s, redundancy=s.redundancy and replace(s.redundancy, devices=()))
        for s in scenario.spec.stages
    )
    stages = tuple(
        replace(s, segments=(SegmentSpec(device=s.device, wcet_ns=s.wcet_ns),)) for s in whole
    )
    whole, parted = (
        replace(scenario, spec=replace(scenario.spec, stages=found), faults=())
        for found in (whole, stages)
    )
    assert drive(parted).digest == drive(whole).digest


@examples(20)
@given(segmented(), st.integers(0, 40))
def test_a_snapshot_taken_anywhere_gives_the_same_tail(scenario, place):
    whole = drive(scenario).calls
    place = min(place, len(whole) - 1)
    kernel = Kernel(scenario.spec, recorded=scenario.recorded)
    for call in whole[:place]:
        kernel.handle(call.at_ns, call.events)
    other = Kernel(scenario.spec, recorded=scenario.recorded)
    other.restore(kernel.snapshot())
    for call in whole[place:]:
        assert other.handle(call.at_ns, call.events) == call.commands


# An independent simulator: one preemptive processor, one GPU stream that is not


@pytest.fixture(scope="module")
def oracle():
    if not ORACLE.exists():
        pytest.skip("the independent oracle is not at hand: no ../shared/oracles")
    spec = importlib.util.spec_from_file_location("avrt_oracle_segsim", ORACLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@st.composite
def gpu_tasks(draw):
    """Tasks `(T, D, [("C", n), ("G", n), ...])`, most urgent first, all beginning on the CPU."""
    pick = Picker(draw, 30)
    return [
        (
            pick.integer(5, 30),
            1000,
            [("CG"[n % 2], pick.integer(1, 4)) for n in range(pick.integer(1, 5))],
        )
        for _ in range(draw(st.integers(1, 4)))
    ]


def finishes(tasks, wait):
    kinds = {"C": ("cpu", "suspend"), "G": ("gpu", "spin" if wait == "busy" else "suspend")}
    stages = tuple(
        StageSpec(
            name=f"t{i}",
            device="cpu",
            wcet_ns=sum(n for _, n in parts),
            deadline_ns=deadline,
            period_ns=period,
            priority=i + 1,
            queue=1000,
            segments=tuple(
                SegmentSpec(device=kinds[kind][0], wcet_ns=n, wait=kinds[kind][1])
                for kind, n in parts
            ),
        )
        for i, (period, deadline, parts) in enumerate(tasks)
    )
    devices = (
        DeviceSpec(name="cpu", type="simulated", preemptive=True),
        DeviceSpec(name="gpu", type="simulated"),
    )
    spec = PipelineSpec(name="gpu", policy="fp", devices=devices, stages=stages)
    check(spec)
    result = simulate(spec, until_ns=HORIZON)
    return [[job.end_ns for job in result.jobs_of(stage.name)] for stage in stages]


@pytest.mark.parametrize("wait", ["suspend", "busy"])
@examples(60)
@given(tasks=gpu_tasks())
def test_finish_times_are_those_of_an_independent_simulator(oracle, wait, tasks):
    assert finishes(tasks, wait) == oracle.segsim(tasks, HORIZON, wait=wait)


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["suspend", "busy"])
@examples(2000)
@given(tasks=gpu_tasks())
def test_so_they_are_in_many_more_cases(oracle, wait, tasks):
    assert finishes(tasks, wait) == oracle.segsim(tasks, HORIZON, wait=wait)

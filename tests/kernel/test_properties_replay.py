"""Determinism: the same calls give the same commands, whatever else differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builder import Bench, timer
from hypothesis import given
from hypothesis import strategies as st
from tracing import World, drive

from avrt.errors import KernelError
from avrt.kernel import Kernel
from avrt.model.events import (
    Arrived,
    Completed,
    DeviceBack,
    DeviceLost,
    Drain,
    Failed,
    Hung,
    Read,
    SegmentEnded,
    Started,
    StreamLost,
    Voted,
)
from pipelines import Limits, Scenario, examples, scenarios

TWIN = """
import sys
sys.path.insert(0, sys.argv[1])
from test_properties_replay import digest_of_many
print(digest_of_many(int(sys.argv[2])))
"""


def fresh(trace):
    return Kernel(trace.spec, recorded=trace.scenario.recorded)


@examples(20)
@given(scenarios())
def test_the_same_scenario_gives_the_same_journal(scenario):
    assert drive(scenario).digest == drive(scenario).digest


@examples(20)
@given(scenarios(), st.randoms(use_true_random=False))
def test_the_order_of_events_in_one_call_does_not_matter(scenario, random):
    trace = drive(scenario)
    kernel = fresh(trace)
    for call in trace.calls:
        events = list(call.events)
        random.shuffle(events)
        assert kernel.handle(call.at_ns, events) == call.commands


@examples(20)
@given(scenarios(), st.integers(0, 200))
def test_a_restored_snapshot_gives_the_same_tail_from_any_point(scenario, point):
    trace = drive(scenario)
    calls = trace.calls
    point %= len(calls) + 1
    kernel = fresh(trace)
    for call in calls[:point]:
        kernel.handle(call.at_ns, call.events)
    snapshot = kernel.snapshot()
    go_on(kernel, calls[point:])
    for twin in (kernel, fresh(trace)):
        twin.restore(snapshot)
        go_on(twin, calls[point:])


def go_on(kernel, calls):
    for call in calls:
        assert kernel.handle(call.at_ns, call.events) == call.commands
        assert kernel.next_wakeup_ns == call.wakeup_ns


@examples(20)
@given(scenarios())
def test_reading_the_next_wakeup_changes_nothing(scenario):
    trace = drive(scenario)  # reads it after every call
    kernel = fresh(trace)
    for call in trace.calls:
        assert kernel.handle(call.at_ns, call.events) == call.commands


@examples(12)
@given(scenarios(), st.randoms(use_true_random=False))
def test_a_refused_call_changes_nothing(scenario, random):
    def pester(kernel, at_ns, events):
        for bad in illegal_events(kernel, random):
            with pytest.raises(KernelError):
                kernel.handle(at_ns, [*events, bad])
            with pytest.raises(KernelError):
                kernel.handle(at_ns, [bad, *events])
        if kernel.now_ns > 0:
            with pytest.raises(KernelError, match="time went back"):
                kernel.handle(kernel.now_ns - 1, [])

    assert drive(scenario, before_call=pester).digest == drive(scenario).digest


def illegal_events(kernel, random):
    """Events that may not come now, a few of them."""
    working = kernel.working_jobs
    unknown = 10**6
    events = [
        Completed(unknown, unknown, 0),
        Failed(unknown, "SoftwareFault"),
        Hung(unknown),
        Started(unknown, 0),
        SegmentEnded(working[0] if working else 0),
        Voted(unknown, "majority", None),
        Read(unknown),
        Arrived("nobody", 0, 0, 0, unknown),
        StreamLost("nobody"),
        DeviceLost("nobody"),
        DeviceBack("nobody"),
    ]
    return random.sample(events, 2)


@examples(20)
@given(scenarios())
def test_moving_time_without_events_only_moves_time_between_wakeups(scenario):
    trace = drive(scenario)
    kernel = fresh(trace)
    for call in trace.calls:
        wakeup_ns = kernel.next_wakeup_ns
        before_ns = call.at_ns - 1
        if kernel.now_ns < before_ns and (wakeup_ns is None or wakeup_ns > before_ns):
            assert kernel.handle(before_ns, []) == []
        assert kernel.handle(call.at_ns, call.events) == call.commands


@examples(25)
@given(scenarios(Limits(criticality=Limits().criticality[:1])))
def test_after_a_call_the_next_wakeup_lies_ahead(scenario):
    for call in drive(scenario).calls:
        assert call.wakeup_ns is None or call.wakeup_ns > call.at_ns


@examples(15)
@given(scenarios())
def test_the_end_of_a_drained_run_wants_no_more_wakeups(scenario):
    world = World(scenario)
    world.run()
    assert world.kernel.next_wakeup_ns is None
    with pytest.raises(KernelError, match="draining already"):
        world.kernel.handle(world.kernel.now_ns, [Drain()])


def digest_of_many(count):
    """One digest over `count` scenarios, the same in every process."""
    from hypothesis import settings  # noqa: PLC0415 - the twin process imports this module

    digests = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None)
    @given(scenarios())
    def collect(scenario):
        digests.append(drive(scenario).digest)

    collect()
    return "".join(digests)


@pytest.mark.slow
def test_the_journal_is_the_same_under_any_hash_seed():
    here = str(Path(__file__).parent)
    outputs = set()
    for seed in ("0", "1", "4711"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", TWIN, here, "60"]
        twin = subprocess.run(command, env=env, capture_output=True, check=True)  # noqa: S603
        outputs.add(twin.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


def test_another_execution_time_gives_another_journal():
    """The digest does depend on what happens, or its equality would say nothing."""
    spec = Bench(timer("beat", 10, wcet_ns=9)).spec
    assert drive(Scenario(spec, costs=(3,))).digest != drive(Scenario(spec, costs=(4,))).digest

"""A table under every driver: virtual time, the wall clock, what-if; any table, right or wrong."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from test_virtual import FROM_OUTSIDE, Script, run, telling
from test_wall import PATIENCE_NS, FakeWall, FakeWorker, arrivals, wall_run
from test_whatif import Lines
from tracing import drive

from avrt.drivers.virtual import VirtualLoop
from avrt.drivers.wall import WallLoop
from avrt.drivers.whatif import repeat
from avrt.kernel import Kernel
from pipelines import Limits, examples, scenarios

TABLES = scenarios(Limits(policies=("table",), recorded=False, endless=False))


@examples(30)
@given(TABLES)
def test_in_virtual_time_it_makes_the_calls_of_the_tests_own_driver(scenario):
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    calls = run(scenario.spec, Script(scenario), feed, until_ns=scenario.until_ns)
    expected = [(call.at_ns, call.events, call.commands) for call in trace.calls]
    assert telling(calls) == telling(expected)


@examples(30)
@given(TABLES)
def test_at_the_wall_clock_a_driver_that_is_never_late_decides_alike(scenario):
    assume(scenario.spec.sources and scenario.arrivals)
    feed = arrivals(scenario)
    expected = run(scenario.spec, Script(scenario), feed)
    calls, late = wall_run(scenario.spec, FakeWorker(scenario, FakeWall()), feed)
    assert telling(calls) == telling(expected)
    assert late == 0


@examples(20)
@given(TABLES)
def test_a_run_in_virtual_time_is_repeated_call_for_call(scenario):
    scenario = replace(scenario, vote_delays=(0,))
    trace = drive(scenario, drain_last=True)
    feed = [(at, e) for at, e in trace.events if isinstance(e, FROM_OUTSIDE)]
    kept = Lines()
    spec, worker, until_ns = scenario.spec, Script(scenario), scenario.until_ns
    VirtualLoop(spec, Kernel(spec), iter(feed), worker, kept.journal, until_ns=until_ns).run()
    recorded = kept.recorded(spec)
    assert repeat(recorded, spec).digest == recorded.digest


@examples(20)
@given(TABLES, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_a_run_at_the_wall_clock_is_repeated_call_for_call(scenario, delays):
    assume(scenario.spec.sources and scenario.arrivals)
    kept, wall = Lines(), FakeWall(tuple(delays))
    spec, worker = scenario.spec, FakeWorker(scenario, wall)
    worker.hang_timeout_ns = PATIENCE_NS
    WallLoop(Kernel(spec), iter(arrivals(scenario)), worker, kept.journal, wall).run()
    recorded = kept.recorded(spec)
    assert repeat(recorded, spec).digest == recorded.digest

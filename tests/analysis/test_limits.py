"""Where an analysis would take too long, or does not apply, the answer is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import device, sampled, stage, timer
from hypothesis import given
from hypothesis import strategies as st
from test_findings import found, pipeline

from avrt.analysis import chains, global_tests, holistic, interference, response_time, supply
from avrt.analysis import demand as demand_tests
from avrt.analysis.schedulability import analyse
from avrt.analysis.sensitivity import remedies
from avrt.analysis.supply import response_in_supply
from avrt.analysis.tasks import Task
from avrt.model.spec import ChainSpec, SyncSpec
from avrt.model.supply import Supply

PREEMPTIVE = device(slots=2, preemptive=True)


def task(wcet_ns=2, period_ns=10, deadline_ns=10, **keys):
    return Task(name="t", wcet_ns=wcet_ns, period_ns=period_ns, deadline_ns=deadline_ns, **keys)


@pytest.mark.parametrize("limit", ["STEPS_MAX", "POINTS_MAX"])
def test_a_busy_window_that_is_too_long_has_no_bound(monkeypatch, limit):
    monkeypatch.setattr(response_time, limit, 0)
    tasks = [task(3, 10), task(2, 14), task(4, 30)]
    if limit == "STEPS_MAX":
        assert response_time.fixed_priority(tasks[0], tasks[1:]) is None
    else:
        assert response_time.first_in_first_out(tasks[0], tasks[1:]) is None
    assert response_time.earliest_deadline_first(tasks[0], tasks[1:]) is None


def test_too_much_work_has_no_bound_under_any_policy():
    tasks = [task(6, 10), task(6, 10)]
    assert response_time.fixed_priority(tasks[0], tasks[1:]) is None
    assert response_time.earliest_deadline_first(tasks[0], tasks[1:]) is None
    assert response_time.first_in_first_out(tasks[0], tasks[1:]) is None


def test_too_long_a_walk_over_windows_is_no_verdict(monkeypatch):
    tasks = [task(3, 10, 9), task(2, 14, 13), task(4, 30, 20)]
    assert demand_tests.quick_demand_test(tasks) is True
    monkeypatch.setattr(demand_tests, "STEPS_MAX", 0)
    monkeypatch.setattr(demand_tests, "WINDOWS_MAX", 0)
    assert demand_tests.quick_demand_test(tasks) is None
    assert demand_tests.first_overload_ns(tasks) is None
    monkeypatch.setattr(demand_tests, "busy_period_ns", lambda *_: None)
    assert demand_tests.quick_demand_test(tasks) is None


def test_a_window_shorter_than_every_deadline_has_no_demand():
    assert demand_tests.quick_demand_test([task(2, 10, 50)]) is True


def test_waiting_that_does_not_settle_has_no_bound(monkeypatch):
    monkeypatch.setattr(interference, "STEPS_MAX", 0)
    assert interference.least_waiting_ns(lambda _: [1], lambda ns: ns + 1, 1, (0, 9)) is None


def test_bounds_that_still_grow_after_many_rounds_are_given_up(monkeypatch):
    monkeypatch.setattr(holistic, "ROUNDS_MAX", 1)
    spec = pipeline(stage("a", "s", deadline_ns=50), stage("b", "r", deadline_ns=60))
    assert [finding.verdict for finding in analyse(spec).stages] == ["unknown", "unknown"]


def test_global_tests_of_long_deadlines_are_unknown():
    long = [task(2, 10, 20)]
    assert global_tests.bak(long, 2) == global_tests.bcl(long, 2) == "unknown"
    assert global_tests.response_times_fp([*long, task()], 2) == [None, None]
    late = [task(12, 20, 11)]
    assert global_tests.bak(late, 2) == global_tests.bcl(late, 2) == "unknown"
    assert global_tests.tardiness_ns([task(9, 10)] * 3, 2) is None


def test_density_accepts_what_windows_do_not():
    """Four heavy tasks and two light ones: their densities sum to 1.4, at most 2 - 0.3."""
    light = [stage(f"a{i}", f"s{i}", wcet_ns=1, deadline_ns=10) for i in range(2)]
    heavy = [timer(f"b{i}", 20, wcet_ns=6, deadline_ns=20) for i in range(4)]
    spec = pipeline(*light, *heavy, devices=(PREEMPTIVE,), period_ns=10)
    assert analyse(spec).verdict == "meets"
    assert analyse(spec).stage("a0").response.source.startswith("density")


def test_a_budget_below_the_wcet_aborts_what_takes_its_wcet():
    spec = pipeline(stage("a", "s", wcet_ns=4, budget_ns=3, on_overrun="abort"))
    assert found(spec, "a")[2] == "misses"
    assert "budget" in analyse(spec).stage("a").why


def test_a_skipped_release_is_told_where_the_one_before_may_be_busy():
    spec = pipeline(
        stage("a", "s", wcet_ns=3, deadline_ns=30, on_miss="skip_next"),
        timer("b", 40, wcet_ns=9, deadline_ns=40),
        period_ns=10,
    )
    assert "skipped" in analyse(spec).stage("a").why


def chain_of(*stages, path, devices=()):
    spec = pipeline(*stages, devices=devices, chains=(ChainSpec(name="c", path=path, age_ns=500),))
    return analyse(spec).chains[0]


def test_a_chain_whose_input_may_be_too_old_is_unknown():
    reader = timer("b", 20, inputs=(sampled("a", optional=True, max_age_ns=20),))
    finding = chain_of(stage("a", "s"), reader, path=("s", "a", "b"))
    assert "too old" in finding.latency.source


def test_a_chain_through_sets_that_may_stay_incomplete_is_unknown():
    both = stage("b", "s", "r", sync=SyncSpec(tolerance_ns=1, timeout_ns=5), queue=9)
    assert "incomplete" in chain_of(both, path=("s", "b")).latency.source
    one = stage("b", "s", sampled("r", optional=True), sync=both.sync, queue=9)
    assert chain_of(one, path=("s", "b")).latency.label == "bound"


def test_a_chain_rests_on_what_triggers_its_stages_from_outside():
    fuse = stage("fuse", "detect", "pose", device="two")
    devices = (device(), device("two"))
    known = chain_of(stage("detect", "cam"), fuse, path=("pose", "fuse"), devices=devices)
    assert known.latency.ns == 100 + 100 + 2 + 2 - 1
    aborted = stage("detect", "cam", wcet_ns=5, deadline_ns=4, on_miss="abort")
    sets = stage("detect", "cam", "lidar", sync=SyncSpec(tolerance_ns=1, timeout_ns=5))
    tired = stage("detect", "cam", sampled("gnss", max_age_ns=99))
    for detect, why in (
        (aborted, "detect may not end every job"),
        (sets, "detect skips incomplete sets"),
        (tired, "detect may find gnss too old"),
    ):
        found = chain_of(detect, fuse, path=("pose", "fuse"), devices=devices)
        assert (found.latency.label, found.latency.source) == ("unknown", why)
    rested = stage("detect", "cam", sampled("gnss", max_age_ns=100))
    assert chain_of(rested, fuse, path=("pose", "fuse"), devices=devices).latency == known.latency


def test_a_trigger_that_may_be_too_old_when_its_job_begins_leaves_a_chain_unknown():
    late = stage("b", sampled("a", max_age_ns=3))
    assert chain_of(stage("a", "s"), late, path=("s", "a", "b")).latency.label == "unknown"
    in_time = stage("b", sampled("a", max_age_ns=4))
    assert chain_of(stage("a", "s"), in_time, path=("s", "a", "b")).latency.ns == 104


def test_a_required_input_that_need_not_ever_come_leaves_a_chain_unknown():
    join = stage("join", "a", sampled("b"))
    spec = pipeline(join, chains=(ChainSpec(name="c", path=("a", "join")),))
    silent = replace(spec, sources=(spec.sources[0], replace(spec.sources[1], period_ns=None)))
    assert analyse(spec).chains[0].latency.label == "bound"
    assert analyse(silent).chains[0].latency.source == "b has no rate"


def test_a_chain_with_too_many_jobs_in_a_hyperperiod_gets_its_bound(monkeypatch):
    parts = [
        timer("a", 10, publish="at_deadline"),
        timer("b", 14, publish="at_deadline", deadline_ns=14,
              inputs=(sampled("a", optional=True),)),
    ]  # fmt: skip
    exact = chain_of(*parts, path=("a", "b")).latency
    monkeypatch.setattr(chains, "JOBS_MAX", 1)
    bound = chain_of(*parts, path=("a", "b")).latency
    assert (exact.label, bound.label) == ("exact", "bound")
    assert exact.ns <= bound.ns


def test_a_slower_timer_is_a_remedy():
    spec = pipeline(
        timer("a", 10, wcet_ns=7, deadline_ns=30), timer("b", 20, wcet_ns=7, deadline_ns=40)
    )
    assert any(change.key == ("stages", "a", "period") for change in remedies(spec))


# Reservations


@given(st.integers(1, 20), st.integers(0, 19), st.integers(1, 200))
def test_the_shortest_window_is_the_first_that_gives_the_work(budget_ns, rest_ns, work_ns):
    reservation = Supply(budget_ns + rest_ns, budget_ns)
    window_ns = reservation.window_ns(work_ns)
    assert reservation.least_ns(window_ns) >= work_ns > reservation.least_ns(window_ns - 1)
    assert reservation.window_ns(0) == 0


def test_a_reservation_bounds_what_it_is_enough_for(monkeypatch):
    assert response_in_supply(task(2, 10), [], Supply(5, 5)) == 2
    assert response_in_supply(task(7, 10), [], Supply(5, 3)) is None
    assert response_in_supply(task(2, 10), [task(3, 30)], Supply(5, 3)) is not None
    monkeypatch.setattr(supply, "STEPS_MAX", 0)
    assert response_in_supply(task(2, 10), [], Supply(5, 3)) is None
    monkeypatch.setattr(supply, "JOBS_MAX", 0)
    assert response_in_supply(task(2, 10), [], Supply(5, 3)) is None


def test_equal_tasks_are_told_apart():
    one = task()
    assert one != replace(one)

"""The ladder: each property of its rules, and all states by all events to a depth."""

import copy
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.safety.ladder import (
    AGE_NS_MAX,
    CLEAR_NS,
    DWELL_NS,
    Health,
    Ladder,
    Level,
    Transition,
)
from avrt.units import NS_PER_MS, NS_PER_S

NAMES = ("nominal", "degraded_1", "degraded_2", "degraded_3", "cpu_only", "minimal_risk")
NEEDS = (4, 3, 2, 1, 0, 0)
TICK_NS = 10 * NS_PER_MS
WELL = Health(devices=4)
LAST = len(NAMES) - 1


def seed_levels():
    """4 GPUs 300 frames a second, 225, 150, 75, the CPU 30, and the minimal-risk plan."""
    return [Level(name, devices) for name, devices in zip(NAMES, NEEDS, strict=True)]


@pytest.fixture
def ladder():
    return Ladder(seed_levels())


def run(ladder, seconds, health, tick_ns=TICK_NS):
    """Step a ladder through time; `health` gives each tick's by seconds."""
    start_ns = ladder._now_ns
    found = []
    for tick in range(1, round(seconds * NS_PER_S / tick_ns) + 1):
        at_ns = start_ns + tick * tick_ns
        changed = ladder.step(at_ns, health((at_ns - start_ns) / NS_PER_S))
        if changed is not None:
            found.append(changed)
    return found


def always(**keys):
    return lambda _seconds: Health(**{"devices": 4, **keys})


# Down


@pytest.mark.parametrize("devices", range(5))
def test_a_level_is_never_better_than_the_devices_allow(ladder, devices):
    changed = ladder.step(TICK_NS, Health(devices=devices))
    assert ladder.name == NAMES[4 - devices]
    assert (changed is None) == (devices == 4)


@pytest.mark.parametrize(
    ("health", "cause"),
    [
        (Health(devices=4, failing=2), "failing"),
        (Health(devices=4, age_ns=AGE_NS_MAX + 1), "failing"),
        (Health(devices=4, orders_stop=True), "order"),
    ],
)
def test_what_cannot_be_trusted_comes_to_a_safe_stop_at_once(ladder, health, cause):
    assert ladder.step(TICK_NS, health) == Transition(TICK_NS, "nominal", "minimal_risk", cause)
    assert ladder.is_last


def test_several_losses_at_once_are_one_transition(ladder):
    assert ladder.step(TICK_NS, Health(devices=1)).after == "degraded_3"


@pytest.mark.parametrize(
    ("duty", "at_s"), [(0.1, None), (0.19, None), (0.2, None), (0.22, 31), (0.5, 2.5), (1.0, 1.0)]
)
def test_an_overload_that_toggles_trips_if_it_holds_for_more_than_a_fifth(ladder, duty, at_s):
    found = run(
        ladder, 120, lambda t: Health(devices=4, overload=round(t * 100) % 100 < 100 * duty)
    )
    if at_s is None:
        assert found == []
    else:
        assert found[0].cause == "overload"
        assert found[0].at_ns / NS_PER_S == pytest.approx(at_s, rel=0.2)


def test_a_lasting_overload_goes_down_level_by_level_to_the_last(ladder):
    found = run(ladder, 6, always(overload=True))
    assert [change.after for change in found] == list(NAMES[1:])
    assert [change.at_ns // NS_PER_S for change in found] == [1, 2, 3, 4, 5]


# Up


def test_it_climbs_one_level_at_a_time_and_not_too_soon(ladder):
    ladder.step(TICK_NS, Health(devices=0))
    found = run(ladder, 60, always())
    assert [change.after for change in found] == [
        "degraded_3",
        "degraded_2",
        "degraded_1",
        "nominal",
    ]
    times = [change.at_ns for change in found]
    assert all(b - a >= max(DWELL_NS, CLEAR_NS) for a, b in pairwise(times))


@pytest.mark.parametrize("keys", [{"overload": True}, {"admits": False}])
def test_it_stays_down_while_something_forbids_the_level_above(ladder, keys):
    ladder.step(TICK_NS, Health(devices=3))
    forbidden = lambda t: Health(devices=4, **keys) if t % 4 < 0.1 else WELL  # noqa: E731
    assert [c for c in run(ladder, 60, forbidden) if c.cause == "clear"] == []
    assert run(ladder, 6, always())[0].after == "nominal"


def test_a_device_that_blinks_costs_one_way_down_and_one_up(ladder):
    found = run(ladder, 60, lambda t: Health(devices=0 if 5 < t < 5.02 else 4))
    assert [change.after for change in found] == ["cpu_only", *NAMES[3::-1]]


@pytest.mark.slow
def test_a_device_that_flaps_ends_up_unused(ladder):
    """6 s up and 1 s down for 30 minutes: 514 changes where each is followed."""
    found = run(ladder, 1800, lambda t: Health(devices=4 if t % 7 < 6 else 3))
    assert len(found) <= 11
    other = run(Ladder(seed_levels()), 1800, lambda t: Health(devices=4 if t % 40 < 39 else 3))
    assert len(other) <= 23


@pytest.mark.slow
def test_the_clear_time_is_forgiven_after_ten_quiet_minutes(ladder):
    run(ladder, 60, lambda t: Health(devices=4 if t % 7 < 6 else 3))
    assert ladder.clear_ns > CLEAR_NS
    run(ladder, 700, always())
    assert ladder.clear_ns == CLEAR_NS


# The last level


def test_only_a_vehicle_that_stands_leaves_the_last_level_and_after_a_reset(ladder):
    ladder.step(TICK_NS, Health(devices=4, failing=2))
    for keys in ({}, {"stands": True}, {"resets": True}):
        assert run(ladder, 30, always(**keys)) == []
    ladder.step(ladder._now_ns, Health(devices=4, stands=True, resets=True))
    assert [change.after for change in run(ladder, 60, always())] == list(NAMES[4::-1])


def test_an_overload_at_the_level_before_the_last_is_the_last(ladder):
    ladder.step(TICK_NS, Health(devices=0))
    assert run(ladder, 2, always(devices=0, overload=True))[0].after == "minimal_risk"


# All of it


@pytest.mark.slow
def test_nothing_happens_while_nothing_is_wrong(ladder):
    assert run(ladder, 1000, always()) == []


def invariants(before, after, health, changed):
    allowed = next(i for i, need in enumerate(NEEDS) if need <= health.devices)
    assert after.level >= min(allowed, LAST)
    assert before.level - after.level <= 1
    if before.level > after.level:
        assert changed.cause == "clear"
        assert after._now_ns - before._since_ns >= DWELL_NS
        assert not before.is_last or (health.stands and health.resets) or not before._latched
    if health.failing >= 2 or health.orders_stop:
        assert after.is_last
    if before._latched and not (health.stands and health.resets):
        assert after.level == before.level
    assert (changed is not None) == (before.level != after.level)
    assert 0 <= after._overload_ns < NS_PER_S


EVENTS = [
    Health(devices=devices, overload=overload, failing=failing, stands=stands, resets=stands)
    for devices, overload, failing, stands in product(
        (4, 3, 1, 0), (False, True), (0, 2), (False, True)
    )
]


@pytest.mark.slow
def test_all_states_by_all_events_to_a_depth_of_ten():
    """Ticks of 2.5 s, in which everything happens that takes its time: 10 of them are 25 s."""
    known = set()
    front = [Ladder(seed_levels())]
    visited = 0
    for _ in range(10):
        coming = []
        for ladder, health in product(front, EVENTS):
            after = copy.copy(ladder)
            changed = after.step(ladder._now_ns + 2500 * NS_PER_MS, health)
            invariants(ladder, after, health, changed)
            visited += 1
            key = tuple(sorted((k, v) for k, v in vars(after).items() if k != "levels"))
            if key not in known:
                known.add(key)
                coming.append(after)
        front = coming
    assert visited > 50_000
    assert {dict(state)["level"] for state in known} == set(range(len(NAMES)))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 800)), max_size=40))
def test_the_rules_hold_and_the_same_trace_gives_the_same_transitions(trace):
    found = []
    for _ in range(2):
        ladder, changes = Ladder(seed_levels()), []
        for health, ticks in trace:
            before = copy.copy(ladder)
            changed = ladder.step(ladder._now_ns + ticks * TICK_NS, health)
            invariants(before, ladder, health, changed)
            changes.append(changed)
        found.append(changes)
    assert found[0] == found[1]

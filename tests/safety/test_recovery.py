"""When a device is tried again, and when it is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.safety.recovery import FAILURES_MAX, WAIT_NS_MAX, WAIT_NS_MIN, Recovery
from avrt.safety.replicas import WITHIN_NS
from avrt.units import NS_PER_S


def broken(at_ns=0):
    made = Recovery()
    made.lost(at_ns)
    return made


def test_each_try_in_vain_doubles_the_wait_up_to_a_limit():
    recovery, waits = broken(), []
    for _ in range(9):
        waits.append(recovery.wait_ns // NS_PER_S)
        recovery.silent()
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_one_that_breaks_again_begins_with_twice_the_wait_it_began_with():
    recovery, at_ns = Recovery(), 0
    for first_s in (1, 2, 4, 8):
        recovery.lost(at_ns)
        assert recovery.wait_ns == first_s * NS_PER_S
        recovery.silent()
        recovery.back(at_ns)
        at_ns += WAIT_NS_MAX - 1


def test_one_that_worked_for_long_begins_with_the_shortest():
    recovery = broken()
    recovery.back(5)
    recovery.lost(5 + WAIT_NS_MAX - 1)
    assert recovery.wait_ns == 2 * WAIT_NS_MIN
    recovery.back(7 + WAIT_NS_MAX)
    recovery.lost(7 + 2 * WAIT_NS_MAX)
    assert recovery.wait_ns == WAIT_NS_MIN


@pytest.mark.parametrize(
    ("times_s", "is_out"),
    [
        ([0, 1], False),
        ([0, 1, 2], True),
        ([0, 300, 600], True),
        ([0, 300, 601], False),
        ([0, 300, 601, 899], True),
        ([0, 601, 1202, 1803], False),
    ],
)
def test_three_failed_recoveries_within_ten_minutes_are_the_last(times_s, is_out):
    recovery = broken()
    for at_s in times_s:
        recovery.failed(at_s * NS_PER_S)
    assert recovery.is_out == is_out


def test_one_that_does_not_answer_has_failed_nothing():
    recovery = broken()
    for _ in range(99):
        recovery.silent()
    assert not recovery.is_out


@given(st.lists(st.integers(0, 700 * NS_PER_S), max_size=12))
def test_it_is_out_exactly_once_enough_failures_were_near_each_other(steps_ns):
    recovery, at_ns, times_ns = broken(), 0, []
    for step_ns in steps_ns:
        at_ns += step_ns
        recovery.failed(at_ns)
        times_ns.append(at_ns)
        threes = zip(times_ns, times_ns[FAILURES_MAX - 1 :], strict=False)
        assert recovery.is_out == any(last - first <= WITHIN_NS for first, last in threes)

"""What a supply gives, against counting it ns by ns."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from reservations import gives, supplies

from avrt.model.spec import DeviceSpec, placed_supplies
from avrt.model.supply import Supply, end_ns, given_ns

TIMES = st.integers(0, 60)


@given(supplies(), TIMES, TIMES)
def test_what_it_gives_between_two_times_is_the_sum_of_every_ns(supply, from_ns, length_ns):
    until_ns = from_ns + length_ns
    counted = sum(gives(supply, tick) for tick in range(from_ns, until_ns))
    assert supply.given_ns(from_ns, until_ns) == counted


@given(supplies(), TIMES, st.integers(1, 30))
def test_work_ends_with_the_ns_that_completes_it(supply, from_ns, work_ns):
    done_ns = supply.end_ns(from_ns, work_ns)
    assert supply.given_ns(from_ns, done_ns) == work_ns
    assert supply.given_ns(from_ns, done_ns - 1) == work_ns - 1


@given(supplies(), TIMES, TIMES)
def test_no_window_gives_less_than_what_every_window_gives(supply, from_ns, length_ns):
    given = supply.given_ns(from_ns, from_ns + length_ns)
    assert supply.least_ns(length_ns) <= given
    assert supply.end_ns(from_ns, given + 1) <= from_ns + supply.window_ns(given + 1)


def test_a_window_that_gives_the_least_follows_an_early_budget_and_a_late_one():
    supply = Supply(5, 3, (0, 2, 2))
    assert [supply.given_ns(3, 3 + length) for length in range(12)] == [
        supply.least_ns(length) for length in range(12)
    ]
    assert supply.end_ns(3, 3) == 3 + supply.window_ns(3) == 10


def test_where_nobody_knows_when_it_is_given_only_what_is_sure_counts():
    supply = Supply(5, 3, ())
    assert not supply.is_placed
    assert [supply.given_ns(7, 7 + length) for length in (4, 5, 7, 8)] == [0, 1, 3, 3]
    assert supply.end_ns(7, 3) == 7 + 7


def test_a_device_without_one_is_always_there():
    assert given_ns(None, 3, 10) == 7
    assert end_ns(None, 3, 7) == 10
    assert DeviceSpec(name="cpu", slots=2).capacity == 2
    assert DeviceSpec(name="cpu", supply=Supply(5, 3)).capacity == Fraction(3, 5)


def test_only_supplies_that_are_placed_move_virtual_time():
    devices = [
        DeviceSpec(name="a"),
        DeviceSpec(name="b", supply=Supply(5, 3)),
        DeviceSpec(name="c", supply=Supply(5, 3, ())),
    ]
    assert placed_supplies(devices) == {"b": Supply(5, 3)}

"""Quantities: exact decimal arithmetic, one rounding, and messages that say what was expected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.units import NS_MAX, NS_PER_UNIT, duration_ns, format_ns, period_ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("25 ms", 25_000_000),
        ("0.1 ms", 100_000),
        ("25ms", 25_000_000),
        (" 1 s ", 1_000_000_000),
        ("+.5 us", 500),
        ("-3 ns", -3),
        ("0.5 ns", 0),
        ("1.5 ns", 2),
        ("7. ns", 7),
    ],
)
def test_durations(text, ns):
    assert duration_ns(text) == ns


@pytest.mark.parametrize(
    ("text", "ns"), [("10 Hz", 100_000_000), ("30 Hz", 33_333_333), ("100 ms", 100_000_000)]
)
def test_rates_become_periods(text, ns):
    assert period_ns(text) == ns


@pytest.mark.parametrize(
    ("convert", "text", "message"),
    [
        (duration_ns, "25", "expected a duration with its unit, such as \"25 ms\", found '25'"),
        (duration_ns, "", "expected a duration with its unit, such as \"25 ms\", found ''"),
        (duration_ns, "1e3 s", "expected a duration with its unit"),
        (duration_ns, "\u0663 s", "expected a duration with its unit"),
        (duration_ns, "9" * 19 + " s", "expected a duration with its unit"),
        (duration_ns, "1 h", "expected a duration in s, ms, us or ns"),
        (duration_ns, "10 Hz", "expected a duration in s, ms, us or ns"),
        (duration_ns, "9" * 18 + " s", "expected at most 292 years"),
        (period_ns, "10", "expected a rate with its unit, such as \"10 Hz\", found '10'"),
        (period_ns, "0 Hz", "expected a rate above zero, found '0 Hz'"),
        (period_ns, "-1 Hz", "expected a rate above zero"),
        (period_ns, "." + "0" * 17 + "1 Hz", "expected at most 292 years"),
        (period_ns, "3 m", 'expected a rate such as "10 Hz", or a period'),
    ],
)
def test_wrong_quantities_say_what_was_expected(convert, text, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        convert(text)
    assert message in str(caught.value)


@settings(derandomize=True, deadline=None)
@given(st.integers(-NS_MAX, NS_MAX), st.sampled_from(sorted(NS_PER_UNIT)))
def test_whole_numbers_of_a_unit_are_exact(number, unit):
    ns = number * NS_PER_UNIT[unit]
    if abs(number) < 10**18 and abs(ns) <= NS_MAX:
        assert duration_ns(f"{number} {unit}") == ns


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.5 us"),
        (-25_000_000, "-25 ms"),
        (33_333_333, "33.3333 ms"),
        (2_000_000_000, "2 s"),
    ],
)
def test_durations_are_shown_in_the_largest_readable_unit(ns, text):
    assert format_ns(ns) == text

"""Quantities are written `NUMBER UNIT` and held as integer nanoseconds or plain floats.

Decimal arithmetic, rounded half to even once: no float ever touches a time, so `0.1 ms` is
100000 ns exactly and `30 Hz` is 33333333 ns in every process.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal

NS_PER_UNIT = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NS_PER_S = NS_PER_UNIT["s"]
NS_PER_MS = NS_PER_UNIT["ms"]

NS_MAX = 2**63 - 1
NEVER_NS = 1 << 62  # later than any run, with room for sums

NUMBER_PATTERN = r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})"
_QUANTITY = re.compile(rf"({NUMBER_PATTERN})[ \t]*([A-Za-z]{{1,8}})")


def duration_ns(text: str) -> int:
    """Return a duration such as `"25 ms"` in ns; ValueError says what was expected."""
    number, unit = _split(text, 'a duration with its unit, such as "25 ms"')
    if unit not in NS_PER_UNIT:
        raise ValueError(_expected('a duration in s, ms, us or ns, such as "25 ms"', text))
    return _whole(number * NS_PER_UNIT[unit], text)


def period_ns(text: str) -> int:
    """Return the period of a rate such as `"10 Hz"`, or of a duration, in ns."""
    number, unit = _split(text, 'a rate with its unit, such as "10 Hz"')
    if unit != "Hz" and unit not in NS_PER_UNIT:
        raise ValueError(_expected('a rate such as "10 Hz", or a period such as "100 ms"', text))
    if unit != "Hz":
        return duration_ns(text)
    if number <= 0:
        raise ValueError(_expected("a rate above zero", text))
    return _whole(NS_PER_S / number, text)


def metres(text: str) -> float:
    """Return a length such as `"0.6 m"` in metres; ValueError says what was expected."""
    return _in_unit(text, "m", 'a length in metres, such as "0.6 m"')


def degrees(text: str) -> float:
    """Return an angle such as `"-90 deg"` in degrees; ValueError says what was expected."""
    return _in_unit(text, "deg", 'an angle in degrees, such as "-90 deg"')


def format_ns(ns: int) -> str:
    """Return a duration as a person writes it: the largest unit that keeps it readable."""
    magnitude = abs(ns)
    for unit in ("s", "ms", "us"):
        if magnitude >= NS_PER_UNIT[unit]:
            return f"{ns / NS_PER_UNIT[unit]:.6g} {unit}"
    return f"{ns} ns"


def _in_unit(text: str, unit: str, expected: str) -> float:
    number, found = _split(text, expected)
    if found != unit:
        raise ValueError(_expected(expected, text))
    return float(number)


def _split(text: str, expected: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(_expected(expected, text))
    return Decimal(match[1]), match[2]


def _whole(value: Decimal, text: str) -> int:
    ns = int(value.to_integral_value(rounding=ROUND_HALF_EVEN))
    if abs(ns) > NS_MAX:
        raise ValueError(_expected("at most 292 years, which 64 bits of ns hold", text))
    return ns


def _expected(what: str, found: str) -> str:
    return f"expected {what}, found {found!r}"

"""Readers of what only scenarios hold: shares, rates, drifts, factors, numbers, limits."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.config.reader import duration
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.config.node import Node
    from avrt.model.scenario import Relation

SPAN_MAX_NS = 100_000 * NS_PER_S
FACTOR_MAX = 1000
"""With these, sums of times that a run makes stay far below 64 bits."""
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%")
_PPM = re.compile(r"(-?\d{1,6}(?:\.\d{1,3})?)\s*ppm")
_HERTZ = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*Hz")
_LIMIT = re.compile(r"(?:(at most|at least|exactly)\s+)?(\S.*)")
_RELATIONS: dict[str, Relation] = {
    "at most": "at most",
    "at least": "at least",
    "exactly": "exactly",
    "": "exactly",
}


def percent(node: Node) -> Fraction:
    """Return a share such as `1 %`, from 0 to 1."""
    match = _PERCENT.fullmatch(node.text) if isinstance(node.value, str) else None
    if match is None or Fraction(match[1]) > 100:
        raise node.fail(f'expected a share from 0 % to 100 %, such as "1 %", found {node.shown}')
    return Fraction(match[1]) / 100


def parts(node: Node) -> int:
    """Return a drift such as `50 ppm` in parts per 10^9."""
    match = _PPM.fullmatch(node.text) if isinstance(node.value, str) else None
    if match is None or abs(Fraction(match[1])) > 100_000:
        raise node.fail(f'expected a drift such as "50 ppm", found {node.shown}')
    return int(Fraction(match[1]) * 1000)


def hertz(node: Node) -> Fraction:
    """Return how many a second, such as `75 Hz`."""
    match = _HERTZ.fullmatch(node.text) if isinstance(node.value, str) else None
    if match is None:
        raise node.fail(f'expected how many a second, such as "75 Hz", found {node.shown}')
    return Fraction(match[1])


def positive(node: Node) -> float:
    """Return a number above zero."""
    if type(node.value) not in {int, float} or not 0 < float(node.text) <= FACTOR_MAX:
        raise node.fail(f"expected a number above 0, at most {FACTOR_MAX}, found {node.shown}")
    return float(node.text)


def whole(node: Node) -> int:
    """Return a whole number that is not negative and fits 63 bits."""
    if type(node.value) is not int or not 0 <= node.value < 2**63:
        raise node.fail(f"expected a whole number of at least 0, found {node.shown}")
    return node.value


def shift(node: Node) -> int:
    """Return a duration of either sign and at most SPAN_MAX_NS, ns."""
    ns = duration(node)
    if abs(ns) > SPAN_MAX_NS:
        raise node.fail(f"expected at most {format_ns(SPAN_MAX_NS)}, found {node.shown}")
    return ns


def span(node: Node) -> int:
    """Return a duration that is not negative, ns."""
    ns = shift(node)
    if ns < 0:
        raise node.fail(f"expected a duration of at least 0, found {node.shown}")
    return ns


def above_zero(node: Node) -> int:
    """Return a duration above zero, ns."""
    ns = shift(node)
    if ns <= 0:
        raise node.fail(f"expected a duration above 0, found {node.shown}")
    return ns


Limit = tuple["Relation", Fraction, str]
"""How a figure relates to its limit, the limit, and the limit as the user wrote it."""


def limit(read: Callable[[Node], Fraction | int]) -> Callable[[Node], Limit]:
    """Return a reader of `at most VALUE`, `at least VALUE`, or `VALUE`, which means exactly."""

    def read_limit(node: Node) -> Limit:
        match = _LIMIT.fullmatch(node.text.strip())
        if isinstance(node.value, dict | tuple) or match is None:
            raise node.fail(f'expected a limit, such as "at most 3", found {node.shown}')
        told = match[2]
        value: object = int(told) if told.isdecimal() and len(told) < 19 else told
        inner = type(node)(value, told, node.key, node.place)
        return _RELATIONS[match[1] or ""], Fraction(read(inner)), told

    return read_limit

"""What a live run used of its host over time: the samples in its record, by pipeline time.

Shares of cores are means since the sample before, levels are those of the sample's own time.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from avrt.logs.record.run_record import RESOURCES

if TYPE_CHECKING:
    from avrt.logs.record.run_file import RunFile

UNUSABLE = (ValueError, KeyError, TypeError)


class HostSample(NamedTuple):
    """One sample; pipeline ns, figures as in `avrt.device.resources.ResourceSample`."""

    since_ns: int
    at_ns: int
    cores: int
    process_cores: float
    others_cores: float | None
    steal_cores: float | None
    rss_bytes: int | None


class _Noted(NamedTuple):
    at_ns: int
    host_since_ns: int
    host_at_ns: int
    cores: int
    figures: tuple[float, float | None, float | None, int | None]


def read_host(run: RunFile) -> list[HostSample]:
    """Return the samples of a record that are sound, from pipeline time 0 on."""
    noted: list[_Noted] = []
    for line in run.lines(RESOURCES):
        if line.damaged or line.at_ns <= 0:
            continue
        try:
            noted.append(_noted(line.at_ns, json.loads(line.text)))
        except UNUSABLE:
            continue
    rate = _rate(noted)
    return [
        HostSample(
            max(0, one.at_ns - round((one.host_at_ns - one.host_since_ns) * rate)),
            one.at_ns,
            one.cores,
            *one.figures,
        )
        for one in noted
    ]


def _noted(at_ns: int, item: dict[str, float | None]) -> _Noted:
    return _Noted(
        at_ns,
        _whole(item["since_ns"]),
        _whole(item["at_ns"]),
        _whole(item["cores"]),
        (
            _share(item["process_cores"]) or 0.0,
            _share(item["others_cores"]),
            _share(item["steal_cores"]),
            None if item["rss_bytes"] is None else _whole(item["rss_bytes"]),
        ),
    )


def _rate(noted: list[_Noted]) -> float:
    """Return how much pipeline time goes by in host time."""
    for before, after in pairwise(noted):
        if after.host_at_ns > before.host_at_ns:
            return (after.at_ns - before.at_ns) / (after.host_at_ns - before.host_at_ns)
    return 1.0


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {value!r:.40}")
    return value


def _share(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, found {value!r:.40}")
    return float(value)

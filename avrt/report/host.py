"""What a live run used of its host over time: the samples in its record, by pipeline time.

Shares of cores are means since the sample before, levels are those of the sample's own time.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from avrt.logs.record.run_record import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Host(NamedTuple):
    """The samples of a record that are sound, by time, and how many others there are."""

    samples: Sequence[HostSample] = ()
    unusable: int = 0

    def in_steps(self, size: int) -> list[HostSample]:
        """Return so many samples each put together: the mean of shares, the last of levels."""
        starts = range(0, len(self.samples), size)
        return [_together(self.samples[start : start + size]) for start in starts]


class _Noted(NamedTuple):
    at_ns: int
    host_since_ns: int
    host_at_ns: int
    cores: int
    figures: tuple[float, float | None, float | None, int | None]


def read_host(run: RunFile) -> Host:
    """Return the samples of a record from pipeline time 0 on."""
    noted: list[_Noted] = []
    unusable = 0
    for line in run.lines(RESOURCES):
        try:
            sample = _noted(line.at_ns, json.loads(line.text))
        except UNUSABLE:
            unusable += 1
            continue
        if line.damaged:
            unusable += 1
        elif line.at_ns > 0:
            noted.append(sample)
    rate = _rate(noted)
    samples = [
        HostSample(
            max(0, one.at_ns - round((one.host_at_ns - one.host_since_ns) * rate)),
            one.at_ns,
            one.cores,
            *one.figures,
        )
        for one in noted
    ]
    return Host(samples, unusable)


def _together(samples: Sequence[HostSample]) -> HostSample:
    last = samples[-1]
    shares = ("process_cores", "others_cores", "steal_cores")
    process, others, steal = (_mean(samples, name) for name in shares)
    return HostSample(
        samples[0].since_ns, last.at_ns, last.cores, process or 0.0, others, steal, last.rss_bytes
    )


def _mean(samples: Sequence[HostSample], name: str) -> float | None:
    """Return the mean of a share over time, where it is known."""
    known: list[tuple[float, int]] = [
        (getattr(sample, name), max(1, sample.at_ns - sample.since_ns))
        for sample in samples
        if getattr(sample, name) is not None
    ]
    if not known:
        return None
    return sum(share * ns for share, ns in known) / sum(ns for _, ns in known)


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

"""Samples of the host, kept as rows of one array: an hour of them costs no memory after the start.

A sample as an object is half a kilobyte, and a run that samples for an hour would grow by megabytes
for a reason that its memory figure cannot tell from a leak.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from itertools import chain, takewhile
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from _typeshed import DataclassInstance

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU now, as its driver tells it."""

    index: int
    busy_share: float
    used_bytes: int
    total_bytes: int
    celsius: float | None = None


@dataclass(frozen=True, slots=True)
class ResourceSample:
    """What this process and its host used from `since_ns` to `at_ns`, and what was left at `at_ns`.

    Attributes:
        since_ns: host time of the sample before.
        at_ns: host time of this one.
        cores: how many cores this process may use.
        process_cores: cores that this process kept busy.
        others_cores: cores among ours that everything else kept busy.
        steal_cores: cores that the hypervisor took.
        throttled_ns: for how long the control group's quota stopped it.
        memory_stall_ns: for how long some thread of the host waited for memory.
        rss_bytes: memory of this process.
        available_bytes: what could still be had, within the control group's limit too.
        descriptors: open files of this process.
        threads: threads of this process.
        celsius: the hottest sensor.
        gpus: empty where no NVML answers.
    """

    since_ns: int
    at_ns: int
    cores: int
    process_cores: float
    others_cores: float | None = None
    steal_cores: float | None = None
    throttled_ns: int | None = None
    memory_stall_ns: int | None = None
    rss_bytes: int | None = None
    available_bytes: int | None = None
    descriptors: int | None = None
    threads: int | None = None
    celsius: float | None = None
    gpus: tuple[GpuSample, ...] = ()


class Column(NamedTuple):
    """One number of a row."""

    name: str
    is_whole: bool


def _columns(kind: type[DataclassInstance]) -> list[Column]:
    told = [(item.name, str(item.type)) for item in fields(kind)]
    return [Column(name, kind.startswith("int")) for name, kind in told if name != "gpus"]


TIMES = ("since_ns", "at_ns")
PLAIN = _columns(ResourceSample)
OF_GPU = _columns(GpuSample)


class Samples:
    """The last samples of a host, the oldest giving way; safe to ask from any thread.

    A row holds a sample's numbers as float64 and NaN for what the host does not tell. Times are
    kept from the first sample on: they are exact for a hundred days.

    Args:
        size: how many are kept.
        gpus: how many GPUs a row has place for; further ones of a sample are not kept.
    """

    def __init__(self, size: int, gpus: int = 0) -> None:
        width = len(PLAIN) + gpus * len(OF_GPU)
        self._rows = np.full((size, width), NAN)  # written to: all its memory is there from now on
        self._count = 0
        self._origin_ns = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return min(self._count, len(self._rows))

    def append(self, sample: ResourceSample) -> None:
        if self._count == 0:
            self._origin_ns = sample.since_ns
        told = [*_numbers(sample, PLAIN), *chain(*(_numbers(gpu, OF_GPU) for gpu in sample.gpus))]
        told[:2] = sample.since_ns - self._origin_ns, sample.at_ns - self._origin_ns
        width = self._rows.shape[1]
        with self._lock:
            row = self._rows[self._count % len(self._rows)]
            row[:] = NAN
            row[: len(told)] = told[:width]
            self._count += 1

    def since(self, at_ns: int) -> list[ResourceSample]:
        """Return those taken after host time `at_ns`, oldest first."""
        with self._lock:
            found = list(takewhile(lambda sample: sample.at_ns > at_ns, self._newest_first()))
        return found[::-1]

    def all(self) -> list[ResourceSample]:
        """Return all that are kept, oldest first."""
        with self._lock:
            return list(self._newest_first())[::-1]

    def last(self) -> ResourceSample | None:
        """Return the newest; None when there is none yet."""
        with self._lock:
            return next(self._newest_first(), None)

    def _newest_first(self) -> Iterator[ResourceSample]:
        for back in range(1, len(self) + 1):
            row = self._rows[(self._count - back) % len(self._rows)].tolist()
            of_gpus = range(len(PLAIN), len(row), len(OF_GPU))
            gpus = [_values(row[start:], OF_GPU) for start in of_gpus if not isnan(row[start])]
            plain = _values(row, PLAIN)
            for name in TIMES:
                plain[name] = int(plain[name] or 0) + self._origin_ns
            gpus_told = tuple(GpuSample(**gpu) for gpu in gpus)  # type: ignore[arg-type]
            yield ResourceSample(**plain, gpus=gpus_told)  # type: ignore[arg-type]


def _numbers(told: object, columns: Iterable[Column]) -> list[float]:
    values = (getattr(told, column.name) for column in columns)
    return [NAN if value is None else value for value in values]


def _values(row: Sequence[float], columns: Iterable[Column]) -> dict[str, float | None]:
    """Return the values by name; a row may go on after its columns."""
    return {
        column.name: None if isnan(value) else int(value) if column.is_whole else value
        for column, value in zip(columns, row, strict=False)
    }

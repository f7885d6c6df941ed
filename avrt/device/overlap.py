"""What spans say about overlap, and about the time in which a stream did nothing.

All functions are pure, over half-open intervals of ns. The overlap of copies with compute is the
share of the time in which anything is copied during which something is also computed. It is not the
ratio of communication time to compute time, which is shown beside it because it is often quoted:
that is large when copies hide nothing at all. `gaps` says for each gap of a stream what the host
did meanwhile; the parts of a gap always sum to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.device.timeline import Span

Interval = tuple[int, int]

ACTIVITIES = ("waiting", "launching", "preparing")
"""What a host does, the innermost first: who waits in the middle of preparing waits."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Copies beside compute.

    Attributes:
        fraction: share of copy time that lies within compute time, 0 to 1; None without copies.
        ratio: copy time by compute time; None without compute.
    """

    copy_ns: int
    compute_ns: int
    both_ns: int
    fraction: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a stream ran nothing, between its first span and its last.

    Attributes:
        host_ns: what the host did in it, by activity; what is left is `idle`.
    """

    start_ns: int
    end_ns: int
    host_ns: dict[str, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return disjoint intervals in order that cover the same instants."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def intersection(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """Return what two lists of disjoint intervals in order have in common."""
    common = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] <= right[j][1]:
            i += 1
        else:
            j += 1
    return common


def difference(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """Return what is in the first list of disjoint intervals in order and not in the second."""
    rest = []
    for start, end in left:
        at = start
        for other_start, other_end in right:
            if other_end <= at or other_start >= end:
                continue
            if at < other_start:
                rest.append((at, other_start))
            at = max(at, other_end)
        if at < end:
            rest.append((at, end))
    return rest


def length_ns(intervals: Iterable[Interval]) -> int:
    """Return how long disjoint intervals are together."""
    return sum(end - start for start, end in intervals)


def overlap(spans: Iterable[Span]) -> Overlap:
    """Return how much of the copies was hidden behind compute, over all streams."""
    spans = list(spans)
    copies = union((span.start_ns, span.end_ns) for span in spans if span.kind == "copy")
    compute = union((span.start_ns, span.end_ns) for span in spans if span.kind == "compute")
    copy_ns, compute_ns = length_ns(copies), length_ns(compute)
    both_ns = length_ns(intersection(copies, compute))
    return Overlap(
        copy_ns,
        compute_ns,
        both_ns,
        both_ns / copy_ns if copy_ns else None,
        copy_ns / compute_ns if compute_ns else None,
    )


def gaps(spans: Iterable[Span], stream: str, *, ns_min: int = 1) -> list[Gap]:
    """Return the gaps of a stream of at least `ns_min`; its waits count as gaps."""
    spans = list(spans)
    busy = union(
        (span.start_ns, span.end_ns)
        for span in spans
        if span.stream == stream and span.kind in ("compute", "copy")
    )
    between = [(one[1], two[0]) for one, two in pairwise(busy)]
    host = [
        (activity, union((s.start_ns, s.end_ns) for s in spans if s.activity == activity))
        for activity in ACTIVITIES
    ]
    return [Gap(*gap, _explained(gap, host)) for gap in between if gap[1] - gap[0] >= ns_min]


def _explained(gap: Interval, host: list[tuple[str, list[Interval]]]) -> dict[str, int]:
    left = [gap]
    parts = {}
    for activity, intervals in host:
        parts[activity] = length_ns(intersection(left, intervals))
        left = difference(left, intervals)
    parts["idle"] = length_ns(left)
    return parts

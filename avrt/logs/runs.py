"""Where a file begins anew: runs that were written one behind the other, over the same log times.

A recorder under a simulated clock that plays a drive twice, or two recordings put into one file,
give every topic the same log times again. Sorted by log time the runs would be mixed up, message by
message; so each is played on its own, behind the one before.

A run ends where the log times of a channel, which kept their order so far, go back behind
OVERTAKEN_MIN messages or more to where they began, or to NEAR_NS after that at most. Nothing else
is several runs: topics that were written one after the other, chunks that changed places, a
shuffled log, the halves of a log the wrong way round, a recorder's clock that was set back a
little. A file that may hold several is read through once to find out.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.logs.extents import Due, Extent

    Place = tuple[int, int]

NEAR_NS = NS_PER_S
OVERTAKEN_MIN = 8


def may_begin_anew(extents: Sequence[Extent]) -> bool:
    """Whether extents, in the order of the file, may hold several runs, by their times alone."""
    latest_ns = extents[0].start_ns if extents else 0
    for extent in extents:
        if extent.start_ns < latest_ns and extent.start_ns <= extents[0].start_ns + NEAR_NS:
            return True
        latest_ns = extent.start_ns
    return len(extents) == 1


def beginnings(found: Iterable[Due]) -> list[Place]:
    """Return where each run but the first begins, given all messages in the order of the file.

    A place is the offset of an extent and the position in it.
    """
    places: list[Place] = []
    times: dict[int, list[int]] = {}
    disordered: set[int] = set()
    for due in found:
        channel = due.message.channel.id
        known = times.setdefault(channel, [])
        if known and due.log_ns < known[-1] and channel not in disordered:
            overtaken = len(known) - bisect_right(known, due.log_ns)
            if overtaken >= OVERTAKEN_MIN and 0 <= due.log_ns - known[0] <= NEAR_NS:
                places.append((due.offset, due.position))
                times, disordered = {channel: [due.log_ns]}, set()
                continue
            disordered.add(channel)
        known.append(due.log_ns)
    return places

"""Runs that were put into one MCAP file one after another, told apart.

A recorder that is started again may append to its file, and files are joined: log times and
counters then begin again, and by log time alone the messages of two runs would be mixed. A new run
begins where, in the order of the file,

* the log time of a channel goes back, and that of every channel that comes on both sides of it;
* and their counters (`sequence`) begin again, no higher than where the run before began. Counters
  that never count will do behind a Metadata record of a name that is there twice, and not more
  often than `RUNS_MARKED_MAX`: what is written all the time marks no runs;
* or counters go on, as those of a recorder do that saw a drive played twice under a simulated
  clock: then log times go back, by more than `NEAR_NS` and over `OVERTAKEN_MIN` messages of each
  channel, to where the run before began, or to `NEAR_NS` after that at most.

Several chunks whose first log times never go back are one run, without a look at their messages.
Chunks in which one topic lies after the other are one run, for no channel comes again. Where chunks
go back and no run begins, the file is not in order, and all of it is one run.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mcap.opcode import Opcode

from avrt.errors import InputError
from avrt.logs.mcap.file import MESSAGE, read_extent
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avrt.logs.extents import Extent, File
    from avrt.logs.mcap.file import Layout

RUNS_MARKED_MAX = 100
NEAR_NS = NS_PER_S
OVERTAKEN_MIN = 8
END = 1 << 63
EARLIER = -1


class Seen(NamedTuple):
    """One message; its position in the extent that is looked at, `EARLIER` in another one."""

    position: int
    channel: int
    sequence: int
    log_ns: int


def runs_told_apart(file: File, layout: Layout) -> list[Extent]:
    """Return the extents of a file, each with its run; those that hold parts of two, twice."""
    extents = sorted(layout.extents, key=lambda extent: extent.offset)
    marked = _marked(layout.marks, extents)
    found: list[Extent] = []
    for index, extent in enumerate(extents):
        run = found[-1].run if found else 0
        goes_back = bool(found) and extent.start_ns < found[-1].start_ns
        stretches: list[list[Seen]] = []
        if goes_back or index in marked or len(extents) == 1:
            before = [one for one in found if one.run == run]
            stretches = _stretches(file, before, extent, is_marked=index in marked)
            if goes_back and len(stretches) == 1:
                return extents
        if len(stretches) > 1:
            found += _parts(extent, run, stretches)
        else:
            found.append(replace(extent, run=run) if run else extent)
    return found


def _marked(marks: Sequence[tuple[int, str]], extents: Sequence[Extent]) -> set[int]:
    """Return which extents come right behind a Metadata record of a name that is there twice."""
    often = Counter(name for _, name in marks)
    offsets = [extent.offset for extent in extents]
    return {
        bisect(offsets, offset) for offset, name in marks if 2 <= often[name] <= RUNS_MARKED_MAX
    }


def _stretches(
    file: File, before: Sequence[Extent], extent: Extent, *, is_marked: bool
) -> list[list[Seen]]:
    """Return the messages of an extent by run, the first going on with that of the extents before.

    It is one where it cannot be told that others begin.
    """
    earlier = _messages(file, before[-1]) if before else ()
    here = list(_messages(file, extent))
    stretches = _ascending([*(seen._replace(position=EARLIER) for seen in earlier), *here])
    begun = _first(_messages(file, before[0]) if before else stretches[0])
    for one, other in pairwise(stretches):
        if not _begins_again(one, other, begun, is_marked=is_marked):
            return [here]
        begun = _first(other)
    return [[seen for seen in stretch if seen.position != EARLIER] for stretch in stretches]


def _messages(file: File, extent: Extent) -> Iterator[Seen]:
    """Yield the messages of an extent in file order; one that cannot be trusted has none."""
    try:
        content = read_extent(file, extent)
        for opcode, start, _ in content.records() if content.fault is None else ():
            if opcode == Opcode.MESSAGE and extent.holds(start):
                channel, sequence, log_ns, _ = MESSAGE.unpack_from(content.data, start)
                yield Seen(start, channel, sequence, log_ns)
    except InputError:
        return


def _ascending(messages: Iterable[Seen]) -> list[list[Seen]]:
    """Cut messages where the log time of a channel goes back."""
    stretches: list[list[Seen]] = [[]]
    reached: dict[int, int] = {}
    for seen in messages:
        if seen.log_ns < reached.get(seen.channel, seen.log_ns):
            stretches.append([])
            reached = {}
        stretches[-1].append(seen)
        reached[seen.channel] = seen.log_ns
    return stretches


def _first(messages: Iterable[Seen]) -> dict[int, Seen]:
    """Return the first message of each channel."""
    found: dict[int, Seen] = {}
    for seen in messages:
        found.setdefault(seen.channel, seen)
    return found


def _begins_again(
    one: Sequence[Seen], other: Sequence[Seen], begun: Mapping[int, Seen], *, is_marked: bool
) -> bool:
    """Whether a run ends with `one`, whose first messages are `begun`, and `other` is another."""
    last = {seen.channel: seen for seen in one}
    again = [(last[id_], seen) for id_, seen in _first(other).items() if id_ in last]
    return bool(again) and (
        all(
            after.log_ns < before.log_ns
            and after.sequence <= begun.get(after.channel, after).sequence
            and (after.sequence < before.sequence or is_marked)
            for before, after in again
        )
        or all(_loops(begun.get(after.channel), before, after) for before, after in again)
    )


def _loops(begun: Seen | None, before: Seen, after: Seen) -> bool:
    """Whether a channel is where it began, though its counter goes on."""
    return (
        begun is not None
        and after.sequence > before.sequence >= begun.sequence + OVERTAKEN_MIN - 1
        and after.log_ns < before.log_ns - NEAR_NS
        and 0 <= after.log_ns - begun.log_ns <= NEAR_NS
    )


def _parts(extent: Extent, run: int, stretches: Sequence[Sequence[Seen]]) -> Iterator[Extent]:
    """Yield the parts of an extent that belong to runs from `run` on."""
    end = END
    parts: list[Extent] = []
    for number, stretch in reversed(list(enumerate(stretches, run))):
        if stretch:
            times = [seen.log_ns for seen in stretch]
            part = (stretch[0].position, end)
            parts.append(
                replace(extent, start_ns=min(times), end_ns=max(times), part=part, run=number)
            )
            end = stretch[0].position
    return reversed(parts)

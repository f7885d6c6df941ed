"""Taps between the log and the sources: messages that are lost, doubled, late, or wrong.

What happens on the way from the sensor happens to the bytes of a log, before anything looks at
them, so whatever watches stamps and counts sees it: `broken`. What is wrong within a message
happens to its payload, after it was decoded: `spoilt`. On its way a message is hit by its place
among those of its source, or by its log time, in the drive without faults; within, by those that it
comes with.

| kind      | what becomes of the messages that are hit                      |
|-----------|----------------------------------------------------------------|
| drop      | they do not come                                               |
| repeat    | they come with the content of the last one before              |
| duplicate | they come twice, AGAIN_NS apart                                |
| swap      | each comes AGAIN_NS after the next one                         |
| delay     | they come later by `by`, stamps as they were                   |
| stamp     | their stamp is off by `by`                                     |
| drift     | their sender's clock goes `by` millionths faster from then on  |
| jitter    | their stamp is off by up to `by` either way, uniform           |
| counter   | their sender's counter stays what it was                       |
| second    | each comes again `by` later, as a second writer of the topic   |
|           | sends it, with a stamp and a counter of its own                |
| frame_id  | they name another frame, as many letters long                  |
| cross     | the messages of `other` come in their place, meanwhile         |
| twice     | each comes again `by` later as another one, NUDGE off          |
| nan       | a share of their numbers is none                               |
| flip      | one bit of one number is flipped                               |

`readings` has the kinds that are of certain sensors.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from avrt.drivers.draws import generator
from avrt.drivers.inject.readings import misread
from avrt.drivers.inject.values import with_added, with_flip, with_nan
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from avrt.drivers.inject.applied import Applied
    from avrt.logs.decode import Payload
    from avrt.logs.merge import SourceMessage
    from avrt.logs.raw import RawMessage
    from avrt.model.campaign import Injection

    Tap = Callable[[Sequence["Sent"], set[int], Injection], Iterable["Sent"]]

AGAIN_NS = NS_PER_MS
NUDGE = 1e-3  # of every number: a sensor never sees the same thing twice to the bit
TWICE, CROSS = "twice", "cross"
STAMP, FRAME = slice(4, 12), 16
"""Where a CDR message that begins with a header has its stamp, seconds and nanoseconds, and where
its frame begins, after the number of its letters with a zero at the end."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message on its way, with its place among those of its source in the drive without faults.

    Attributes:
        index: counts them from 0.
        at_ns: its log time there, pipeline ns.
    """

    index: int
    at_ns: int
    raw: RawMessage

    def late(self, log_ns: int) -> Sent:
        return replace(self, raw=replace(self.raw, log_ns=log_ns))

    def with_data(self, data: bytes) -> Sent:
        return replace(self, raw=replace(self.raw, data=data))


def broken(
    raws: Sequence[RawMessage],
    topic_of: Mapping[str, str],
    faults: Iterable[Injection],
    zero_ns: int,
    applied: Applied,
) -> Sequence[RawMessage]:
    """Return the messages of a log as they come with these faults on the way.

    Args:
        raws: the messages in the order of the log.
        topic_of: by source.
        faults: of any place; those of others are left alone.
        zero_ns: pipeline time zero in the log's clock.
        applied: is told of the messages that are hit.
    """
    own = [f for f in faults if f.place == "source" and f.kind in {*TAPS, CROSS}]
    topics = dict.fromkeys(topic_of[fault.target] for fault in own)
    made = [raw for raw in raws if raw.topic not in topics]
    for topic in topics:
        on_it = [fault for fault in own if topic_of[fault.target] == topic]
        theirs = [raw for raw in raws if raw.topic == topic]
        sent = [Sent(i, raw.log_ns - zero_ns, raw) for i, raw in enumerate(theirs)]
        crossed = {
            fault.other: [raw for raw in raws if raw.topic == topic_of[fault.other]]
            for fault in on_it
            if fault.kind == CROSS
        }
        made += [one.raw for one in _broken(sent, on_it, crossed, applied)]
    return sorted(made, key=lambda raw: raw.log_ns) if topics else raws


def _broken(
    sent: Sequence[Sent],
    faults: Iterable[Injection],
    crossed: Mapping[str, Sequence[RawMessage]],
    applied: Applied,
) -> Sequence[Sent]:
    for fault in faults:
        hit = {one.index: one.at_ns for one in sent if fault.covers(one.index, one.at_ns)}
        if hit:
            applied.note(fault, min(hit.values()))
            made = (
                _crossed(sent, set(hit), crossed[fault.other])
                if fault.kind == CROSS
                else TAPS[fault.kind](sent, set(hit), fault)
            )
            sent = sorted(made, key=lambda one: one.raw.log_ns)
    return sent


def _drop(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    return (one for one in own if one.index not in hit)


def _repeat(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    last: RawMessage | None = None
    for one in own:
        if one.index in hit and last is not None:
            yield one.with_data(_restamped(last.data, _stamp_ns(one.raw.data)))
        else:
            last = one.raw
            yield one


def _duplicate(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    for one in own:
        yield one
        if one.index in hit:
            yield one.late(one.raw.log_ns + AGAIN_NS)


def _swap(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    for one, after in pairwise([*own, own[-1]]):
        yield one.late(after.raw.log_ns + AGAIN_NS) if one.index in hit else one


def _delay(own: Sequence[Sent], hit: set[int], fault: Injection) -> Iterator[Sent]:
    for one in own:
        yield one.late(one.raw.log_ns + round(fault.by)) if one.index in hit else one


def _stamp(own: Sequence[Sent], hit: set[int], fault: Injection) -> Iterator[Sent]:
    for one in own:
        yield _moved(one, round(fault.by)) if one.index in hit else one


def _drift(own: Sequence[Sent], hit: set[int], fault: Injection) -> Iterator[Sent]:
    begin_ns = next((one.at_ns for one in own if one.index in hit), 0)
    for one in own:
        gone_ns = one.at_ns - begin_ns
        yield _moved(one, round(gone_ns * fault.by / 1e6)) if one.index in hit else one


def _jitter(own: Sequence[Sent], hit: set[int], fault: Injection) -> Iterator[Sent]:
    shares = generator(fault.seed, "jitter").uniform(-1.0, 1.0, max(hit) + 1)
    for one in own:
        yield _moved(one, round(fault.by * shares[one.index])) if one.index in hit else one


def _count_no_more(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    last: RawMessage | None = None
    for one in own:
        if one.index in hit and last is not None:
            yield replace(one, raw=replace(one.raw, sequence=last.sequence))
        else:
            last = one.raw
            yield one


def _second(own: Sequence[Sent], hit: set[int], fault: Injection) -> Iterator[Sent]:
    by_ns = round(fault.by)
    for one in own:
        yield one
        if one.index in hit:
            channel = replace(one.raw.channel, writer="second")
            again = _moved(one.late(one.raw.log_ns + by_ns), by_ns)
            count = 1 + one.index - min(hit)
            yield replace(again, raw=replace(again.raw, channel=channel, sequence=count))


def _rename(own: Sequence[Sent], hit: set[int], _fault: Injection) -> Iterator[Sent]:
    for one in own:
        yield one.with_data(_renamed(one.raw.data)) if one.index in hit else one


def _crossed(own: Sequence[Sent], hit: set[int], others: Iterable[RawMessage]) -> Iterator[Sent]:
    """Yield a source's messages, those of another one from its first hit one to its last."""
    kept = [one for one in own if one.index not in hit]
    struck = [one for one in own if one.index in hit]
    yield from kept
    if not struck:
        return
    first, last = struck[0], struck[-1]
    for raw in others:
        if first.raw.log_ns <= raw.log_ns <= last.raw.log_ns:
            channel = replace(raw.channel, topic=first.raw.topic)
            at_ns = first.at_ns + raw.log_ns - first.raw.log_ns
            yield Sent(first.index, at_ns, replace(raw, channel=channel))


TAPS: Mapping[str, Tap] = {
    "drop": _drop,
    "repeat": _repeat,
    "duplicate": _duplicate,
    "swap": _swap,
    "delay": _delay,
    "stamp": _stamp,
    "drift": _drift,
    "jitter": _jitter,
    "counter": _count_no_more,
    "second": _second,
    "frame_id": _rename,
}


def spoilt(
    items: Iterable[SourceMessage], faults: Iterable[Injection], applied: Applied
) -> Iterator[SourceMessage]:
    """Yield messages with what faults make of their numbers, and those that come on top."""
    own = [f for f in faults if f.place == "source" and f.kind not in TAPS]
    for fault in own:
        if fault.kind == TWICE:
            items = _crowded(items, fault, applied)
    own = [fault for fault in own if fault.kind != TWICE]
    for item in items:
        made = item
        for fault in own:
            if fault.target == item.source and fault.covers(item.sequence, item.log_ns):
                applied.note(fault, item.log_ns)
                made = replace(made, payload=_with(fault, made.payload, made.sequence))
        yield made


def _crowded(
    items: Iterable[SourceMessage], fault: Injection, applied: Applied
) -> Iterator[SourceMessage]:
    """Yield messages of all sources, others between those of one, counted as its sender would."""
    coming: deque[SourceMessage] = deque()
    more = 0
    for item in items:
        while coming and coming[0].log_ns <= item.log_ns:
            yield _moved_up(coming.popleft(), more)
            more += 1
        if item.source != fault.target:
            yield item
            continue
        yield _moved_up(item, more)
        if fault.covers(item.sequence, item.log_ns):
            applied.note(fault, item.log_ns)
            coming.append(_next(item, round(fault.by)))
    for item in coming:
        yield _moved_up(item, more)
        more += 1


def _next(item: SourceMessage, by_ns: int) -> SourceMessage:
    """Return what comes after a message if its sender has more to say than it should."""
    made = replace(
        item,
        log_ns=item.log_ns + by_ns,
        capture_ns=item.capture_ns + by_ns,
        payload=cast("Payload", with_added(item.payload, NUDGE)),
    )
    return _moved_up(made, 1)


def _moved_up(item: SourceMessage, places: int) -> SourceMessage:
    raw = replace(item.raw, sequence=item.raw.sequence + places)
    return replace(item, sequence=item.sequence + places, raw=raw)


def _with(fault: Injection, payload: Payload, index: int) -> Payload:
    rng = generator(fault.seed, f"{fault.kind} {index}")
    match fault.kind:
        case "nan":
            return cast("Payload", with_nan(payload, fault.share, rng))
        case "flip":
            return cast("Payload", with_flip(payload, rng))
        case _:
            return cast("Payload", misread(payload, fault, rng))


def _moved(sent: Sent, by_ns: int) -> Sent:
    """Return a message with another stamp; one before zero stays as it is."""
    stamp_ns = _stamp_ns(sent.raw.data) + by_ns
    return sent if stamp_ns < 0 else sent.with_data(_restamped(sent.raw.data, stamp_ns))


def _order(data: bytes | memoryview) -> str:
    return "<" if data[1] & 1 else ">"


def _stamp_ns(data: bytes | memoryview) -> int:
    seconds, nanoseconds = struct.unpack(f"{_order(data)}iI", data[STAMP])
    return int(seconds) * NS_PER_S + int(nanoseconds)


def _restamped(data: bytes | memoryview, stamp_ns: int) -> bytes:
    stamp = struct.pack(f"{_order(data)}iI", *divmod(stamp_ns, NS_PER_S))
    return bytes(data[: STAMP.start]) + stamp + bytes(data[STAMP.stop :])


def _renamed(data: bytes | memoryview) -> bytes:
    """Return a message whose frame ends with another letter; one that names none as it is."""
    (letters,) = struct.unpack(f"{_order(data)}I", data[FRAME - 4 : FRAME])
    last = FRAME + letters - 2
    if letters < 2:
        return bytes(data)
    return bytes(data[:last]) + (b"y" if data[last] == ord("x") else b"x") + bytes(data[last + 1 :])

"""Taps between the log and the sources: messages that are lost, doubled, late, or wrong.

What happens on the way from the sensor happens to the bytes of a log, before anything looks at
them, so whatever watches stamps and counts sees it: `broken`. What is wrong within a message
happens to its payload, after it was decoded: `spoilt`. A message is hit by its place among those of
its source, or by its log time in the drive without faults.

| kind      | what becomes of the messages that are hit                      |
|-----------|----------------------------------------------------------------|
| drop      | they do not come                                               |
| repeat    | they come with the content of the last one before              |
| duplicate | they come twice, AGAIN_NS apart                                |
| swap      | each comes AGAIN_NS after the next one                         |
| delay     | they come later by `by`, stamps as they were                   |
| stamp     | their stamp is off by `by`                                     |
| jitter    | their stamp is off by up to `by` either way, uniform           |
| nan       | a share of their numbers is none                               |
| flip      | one bit of one number is flipped                               |
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from avrt.drivers.draws import generator
from avrt.drivers.inject.values import with_flip, with_nan
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from avrt.drivers.inject.applied import Applied
    from avrt.logs.decode import Payload
    from avrt.logs.merge import SourceMessage
    from avrt.logs.raw import RawMessage
    from avrt.model.campaign import Injection

    Tap = Callable[[Sequence[RawMessage], set[int], Injection], Iterable[RawMessage]]

AGAIN_NS = NS_PER_MS
STAMP = slice(4, 12)
"""Where a CDR message that begins with a header has its stamp: seconds and nanoseconds."""


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
    for fault in faults:
        if fault.place == "source" and fault.kind in TAPS:
            raws = _broken(raws, topic_of[fault.target], fault, zero_ns, applied)
    return raws


def _broken(
    raws: Sequence[RawMessage], topic: str, fault: Injection, zero_ns: int, applied: Applied
) -> Sequence[RawMessage]:
    own = [raw for raw in raws if raw.topic == topic]
    times_ns = [raw.log_ns - zero_ns for raw in own]
    hit = {i for i, at_ns in enumerate(times_ns) if fault.covers(i, at_ns)}
    if not hit:
        return raws
    applied.note(fault, times_ns[min(hit)])
    others = [raw for raw in raws if raw.topic != topic]
    return sorted([*others, *TAPS[fault.kind](own, hit, fault)], key=lambda raw: raw.log_ns)


def _drop(own: Sequence[RawMessage], hit: set[int], _fault: Injection) -> Iterator[RawMessage]:
    return (raw for i, raw in enumerate(own) if i not in hit)


def _repeat(own: Sequence[RawMessage], hit: set[int], _fault: Injection) -> Iterator[RawMessage]:
    last: RawMessage | None = None
    for i, raw in enumerate(own):
        if i in hit and last is not None:
            yield replace(raw, data=_restamped(last.data, _stamp_ns(raw.data)))
        else:
            last = raw
            yield raw


def _duplicate(own: Sequence[RawMessage], hit: set[int], _fault: Injection) -> Iterator[RawMessage]:
    for i, raw in enumerate(own):
        yield raw
        if i in hit:
            yield replace(raw, log_ns=raw.log_ns + AGAIN_NS)


def _swap(own: Sequence[RawMessage], hit: set[int], _fault: Injection) -> Iterator[RawMessage]:
    for i, (raw, after) in enumerate(pairwise([*own, own[-1]])):
        yield replace(raw, log_ns=after.log_ns + AGAIN_NS) if i in hit else raw


def _delay(own: Sequence[RawMessage], hit: set[int], fault: Injection) -> Iterator[RawMessage]:
    for i, raw in enumerate(own):
        yield replace(raw, log_ns=raw.log_ns + round(fault.by)) if i in hit else raw


def _stamp(own: Sequence[RawMessage], hit: set[int], fault: Injection) -> Iterator[RawMessage]:
    for i, raw in enumerate(own):
        yield _moved(raw, round(fault.by)) if i in hit else raw


def _jitter(own: Sequence[RawMessage], hit: set[int], fault: Injection) -> Iterator[RawMessage]:
    shares = generator(fault.seed, "jitter").uniform(-1.0, 1.0, len(own))
    for i, raw in enumerate(own):
        yield _moved(raw, round(fault.by * shares[i])) if i in hit else raw


TAPS: Mapping[str, Tap] = {
    "drop": _drop,
    "repeat": _repeat,
    "duplicate": _duplicate,
    "swap": _swap,
    "delay": _delay,
    "stamp": _stamp,
    "jitter": _jitter,
}


def spoilt(
    items: Iterable[SourceMessage], faults: Iterable[Injection], applied: Applied
) -> Iterator[SourceMessage]:
    """Yield messages with what faults make of their numbers."""
    own = [f for f in faults if f.place == "source" and f.kind not in TAPS]
    for item in items:
        made = item
        for fault in own:
            if fault.target == item.source and fault.covers(item.sequence, item.log_ns):
                applied.note(fault, item.log_ns)
                made = replace(made, payload=_with(fault, made.payload, made.sequence))
        yield made


def _with(fault: Injection, payload: Payload, index: int) -> Payload:
    rng = generator(fault.seed, f"{fault.kind} {index}")
    if fault.kind == "nan":
        return cast("Payload", with_nan(payload, fault.share, rng))
    return cast("Payload", with_flip(payload, rng))


def _moved(raw: RawMessage, by_ns: int) -> RawMessage:
    """Return a message with another stamp; one before zero stays as it is."""
    stamp_ns = _stamp_ns(raw.data) + by_ns
    return raw if stamp_ns < 0 else replace(raw, data=_restamped(raw.data, stamp_ns))


def _order(data: bytes | memoryview) -> str:
    return "<" if data[1] & 1 else ">"


def _stamp_ns(data: bytes | memoryview) -> int:
    seconds, nanoseconds = struct.unpack(f"{_order(data)}iI", data[STAMP])
    return int(seconds) * NS_PER_S + int(nanoseconds)


def _restamped(data: bytes | memoryview, stamp_ns: int) -> bytes:
    stamp = struct.pack(f"{_order(data)}iI", *divmod(stamp_ns, NS_PER_S))
    return bytes(data[: STAMP.start]) + stamp + bytes(data[STAMP.stop :])

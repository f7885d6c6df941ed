"""Plans against the truth: how soon the vehicle slows down for who comes into its way.

Somebody *enters* when its outline comes within `HALF_WAY` of the x axis of the truth's frame, which
has to be the vehicle's, at most `REACH` ahead, having been beside before; or, if it could not be
seen then, when it can be.
A plan *decelerates* when it brakes by `DECELERATION` or more at some time. The latency is from the
entry to the publication of the first such plan after it; where the plan in force decelerates
already, to the first of those that have done so without a break, so it is negative for what was
foreseen, or where the plan slowed down for something else.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.metrics.accuracy.share import Spread, spread
from avrt.payload.footprint import half_extents
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.model.message import Message
    from avrt.payload import Plan
    from avrt.report.score.scenes import Scenes

HALF_WAY = 1.2  # metres: half a vehicle, and a little
REACH = 40.0  # metres
DECELERATION = 0.5  # m/s^2
PATIENCE_NS = 5 * NS_PER_S  # a plan that slows down later than that has another reason


@dataclass(frozen=True, slots=True)
class Entry:
    """Somebody who came into the vehicle's way, and when the plan slowed down for it."""

    id: int
    label: str
    entered_ns: int
    distance: float
    decelerated_ns: int | None

    @property
    def latency_ns(self) -> int | None:
        return None if self.decelerated_ns is None else self.decelerated_ns - self.entered_ns

    def data(self) -> dict[str, object]:
        return {
            "id": self.id,
            "label": self.label,
            "entered_ns": self.entered_ns,
            "distance_m": self.distance,
            "decelerated_ns": self.decelerated_ns,
            "latency_ns": self.latency_ns,
        }


@dataclass(slots=True)
class PlanScore:
    """The score of one stage that plans."""

    frames: int = 0
    without_truth: int = 0
    entries: list[Entry] = field(default_factory=list)

    @property
    def latency(self) -> Spread:
        return spread(e.latency_ns for e in self.entries if e.latency_ns is not None)

    def data(self) -> dict[str, object]:
        return {
            "kind": "plans",
            "frames": self.frames,
            "without_truth": self.without_truth,
            "latency_ns": self.latency.data(),
            "entries": [entry.data() for entry in self.entries],
        }


def score_plans(messages: Sequence[Message[Plan]], scenes: Scenes) -> PlanScore:
    """Return the score of a stage's output."""
    score = PlanScore()
    for message in messages:
        known = scenes.at(message.stamp.capture_ns) is not None
        score.frames += known
        score.without_truth += not known
    times = [message.stamp.publish_ns for message in messages]
    slow = [float(m.payload.acceleration.min(initial=0.0)) <= -DECELERATION for m in messages]
    for entered_ns, name, label, distance in _entries(scenes):
        if times and times[0] <= entered_ns:
            at_ns = _decelerated(times, slow, entered_ns)
            score.entries.append(Entry(name, label, entered_ns, distance, at_ns))
    return score


def _decelerated(times: list[int], slow: list[bool], entered_ns: int) -> int | None:
    """Return when the plan began to slow down for what entered, None if it did not."""
    place = bisect_right(times, entered_ns) - 1
    if slow[place]:
        while place > 0 and slow[place - 1]:
            place -= 1
        return times[place]
    later = (at for at, is_slow in zip(times, slow, strict=True) if is_slow and at > entered_ns)
    first_ns = next(later, None)
    return first_ns if first_ns is not None and first_ns <= entered_ns + PATIENCE_NS else None


def _entries(scenes: Scenes) -> Iterator[tuple[int, int, str, float]]:
    """Yield when somebody enters, who, its class, and how far ahead, metres."""
    beside: set[int] = set()
    for at_ns in scenes.world.times_ns:
        there = scenes.at(at_ns)
        if there is None:
            beside.clear()
            continue
        for one in there:
            box, name = one.object.box, one.object.id
            along, across = half_extents(box)
            ahead, aside = box.x - along, abs(box.y) - across
            if not 0 < ahead < REACH:
                beside.discard(name)
            elif aside >= HALF_WAY:
                beside.add(name)
            elif name in beside and one.counts:
                beside.discard(name)
                yield at_ns, name, one.object.label, ahead

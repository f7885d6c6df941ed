"""Which messages are used, and once each: repeats, late ones, lost ones, clocks that run ahead.

A sampled input gives the same message until a newer one is there, so a message is known by its
sequence and capture time. One that was captured before others that are in use is late and put in
its place (module `history`), up to HISTORY_NS before the newest; what is older is lost. One that
claims to be captured well after the tracks are due has a wrong clock (TAI for UTC is 37 s) and is
lost too: it would make everything else look old.

The clock of the trigger is the tracker's. When it steps back by more than CLOCK_STEP_NS, time goes
on from there with all tracks. When its source began anew (`Stamp.epoch`), another drive begins:
what was believed no longer holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from avrt.stages.fusion.history import History
from avrt.stages.fusion.planar import Shift, Twist
from avrt.stages.fusion.scene import Look, Scene
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.message import Stamp
    from avrt.stages.fusion.history import Key
    from avrt.stages.fusion.hypothesis import Birth, Hypothesis

HISTORY_NS = 500_000_000
CLOCK_STEP_NS = 1_000_000_000
AHEAD_NS = 500_000_000
TAKEN_MAX = 64

SceneHistory = History[Scene, Look]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came in through one input.

    Attributes:
        taken: sequence and capture time of the newest messages that came, used or not.
        late, lost: see `payload.SensorUse`.
        ahead_ns: by how much the newest message's clock runs ahead; 0 if it does not.
    """

    taken: tuple[tuple[int, int], ...] = ()
    late: int = 0
    lost: int = 0
    ahead_ns: int = 0


@dataclass(frozen=True, slots=True)
class TrackerState:
    """What a tracker knows between two calls; nothing in it is changed in place.

    Attributes:
        history: of looks and scenes.
        inputs: what came, by input.
        newest_ns: capture time of the newest look or trigger so far.
        oldest_ns: what was captured before this is lost.
        names: the id of each track that was published lately, and when.
        published: the tracks published last.
        id_next: the number of the next new track.
    """

    history: SceneHistory
    inputs: Mapping[str, Arrivals] = field(default_factory=dict)
    newest_ns: int | None = None
    oldest_ns: int | None = None
    epoch: int = 0
    frame: str | None = None
    names: Mapping[Birth, tuple[int, int]] = field(default_factory=dict)
    id_next: int = 1
    published: tuple[Hypothesis, ...] = ()

    def at_trigger(self, stamp: Stamp, declared: Twist) -> TrackerState:
        """Return the state made ready for the tracks at a trigger's capture time."""
        at_ns, newest_ns = stamp.capture_ns, self.newest_ns
        if newest_ns is not None and stamp.epoch > self.epoch:
            fresh: SceneHistory = History(Scene(declared))
            return replace(self, history=fresh, epoch=stamp.epoch, newest_ns=at_ns, oldest_ns=at_ns)
        if newest_ns is not None and newest_ns - at_ns > CLOCK_STEP_NS:
            scene = self.history.newest
            kept = tuple(replace(one, support=()) for one in scene.hypotheses)
            moved = replace(
                scene, hypotheses=kept, at_ns=at_ns, moved=Shift(), moved_ns=at_ns, outcomes=None
            )
            return replace(self, history=History(moved), newest_ns=at_ns, oldest_ns=at_ns)
        newest_ns = at_ns if newest_ns is None else max(newest_ns, at_ns)
        return replace(self, epoch=stamp.epoch, newest_ns=newest_ns)

    def is_new(self, name: str, stamp: Stamp) -> bool:
        known = self.inputs.get(name)
        return known is None or (stamp.sequence, stamp.capture_ns) not in known.taken

    def received(self, name: str, stamp: Stamp, key: Key, at_ns: int) -> tuple[TrackerState, bool]:
        """Return the state after a new message came, and whether it is to be used."""
        known = self.inputs.get(name, Arrivals())
        taken = (*known.taken, (stamp.sequence, stamp.capture_ns))[-TAKEN_MAX:]
        ahead_ns = max(0, stamp.capture_ns - at_ns)
        ahead_ns = ahead_ns if ahead_ns > AHEAD_NS else 0
        lost = ahead_ns > 0 or self._is_too_old(stamp.capture_ns) or self.history.holds(key)
        late = not lost and bool(self.history.entries) and key < self.history.entries[-1].key
        arrivals = Arrivals(taken, known.late + late, known.lost + lost, ahead_ns)
        newest_ns = self.newest_ns
        if not lost:
            newest_ns = max(stamp.capture_ns, newest_ns or stamp.capture_ns)
        inputs = {**self.inputs, name: arrivals}
        return replace(self, inputs=inputs, newest_ns=newest_ns), not lost

    def _is_too_old(self, capture_ns: int) -> bool:
        if self.oldest_ns is not None and capture_ns < self.oldest_ns:
            return True
        return self.newest_ns is not None and capture_ns < self.newest_ns - HISTORY_NS

    def with_history(self, history: SceneHistory) -> TrackerState:
        """Return the state with a history, cut to what is kept."""
        if self.newest_ns is None:
            return replace(self, history=history)
        return replace(self, history=history.without(self.newest_ns - HISTORY_NS))


def told_ahead(arrivals: Arrivals) -> str:
    """Return what is wrong with an input's clock, or ""."""
    if not arrivals.ahead_ns:
        return ""
    return f"its clock runs {arrivals.ahead_ns / NS_PER_S:.1f} s ahead"

"""Which replicas are trusted: points for faults, quarantine, and the way back.

Each fault adds the points that the vote gives it, each good frame takes GOOD of them away. A
replica with QUARANTINE_AT points is quarantined: its output counts no more until it has taken over
the state of one that is trusted, and then agreed with the accepted output for SHADOW_FRAMES frames
in a row. The third quarantine within WITHIN_NS is for good.

Of two replicas that disagree nobody knows which one is wrong. So disagreement alone never leaves
fewer than two that are trusted; a crash may. Where nobody is left all are trusted again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from avrt.safety.vote import BLAME
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

GOOD = 0.1
QUARANTINE_AT = 3.0
SHADOW_FRAMES = 100
WITHIN_NS = 600 * NS_PER_S
QUARANTINES_MAX = 3
TRUSTED_MIN = 2

Standing = Literal["active", "quarantined", "shadow", "out"]


@dataclass(slots=True)
class Replica:
    """How one replica stands."""

    standing: Standing = "active"
    points: float = 0.0
    agreed: int = 0
    quarantined_ns: deque[int] = field(default_factory=lambda: deque(maxlen=QUARANTINES_MAX))


class Replicas:
    """The replicas of one stage."""

    def __init__(self, copies: int) -> None:
        self.all = [Replica() for _ in range(copies)]

    @property
    def active(self) -> list[int]:
        return [i for i, replica in enumerate(self.all) if replica.standing == "active"]

    def judge(self, blame: Mapping[int, float], heard: Collection[int], at_ns: int) -> list[int]:
        """Take in who was wrong in one vote; return those that are quarantined by it.

        Args:
            blame: the points of those that were.
            heard: those that gave an output: of them, whoever is not blamed was right.
            at_ns: pipeline time.
        """
        for index in self.active:
            replica, points = self.all[index], blame.get(index, 0.0)
            if points or index in heard:
                replica.points = max(0.0, replica.points + (points or -GOOD))
        guilty = [i for i in self.active if self.all[i].points >= QUARANTINE_AT]
        guilty.sort(key=lambda i: (-self.all[i].points, i))
        found = []
        for index in guilty:
            if blame.get(index, 0.0) >= BLAME["crashed"] or len(self.active) > TRUSTED_MIN:
                self._quarantine(index, at_ns)
                found.append(index)
        if not self.active:
            self._trust_again()
        return found

    def restored(self, index: int) -> None:
        """Let a quarantined replica follow along; it takes over the state of a trusted one."""
        replica = self.all[index]
        if replica.standing == "quarantined":
            replica.standing, replica.agreed, replica.points = "shadow", 0, 0.0

    def followed(self, index: int, *, agrees: bool, at_ns: int) -> None:
        """Take in whether a replica that follows along agreed with the accepted output."""
        replica = self.all[index]
        if replica.standing != "shadow":
            return
        if not agrees:
            self._quarantine(index, at_ns)
            return
        replica.agreed += 1
        if replica.agreed >= SHADOW_FRAMES:
            replica.standing = "active"

    def _trust_again(self) -> None:
        """Let all come back that are not out: what hits all at once tells nothing of one."""
        for replica in self.all:
            if replica.standing != "out":
                replica.standing, replica.points = "active", 0.0

    def _quarantine(self, index: int, at_ns: int) -> None:
        replica = self.all[index]
        replica.quarantined_ns.append(at_ns)
        recent = [at for at in replica.quarantined_ns if at_ns - at <= WITHIN_NS]
        replica.standing = "out" if len(recent) >= QUARANTINES_MAX else "quarantined"
        replica.agreed = 0

"""Whether two sensors see the same things in the same directions: what tells a turned mounting.

A pure state machine over offsets: for each thing that one sensor (the LiDAR) shows, how far to the
left of each thing near by that another one shows it lies, in degrees. Which belongs to which is not
known; a thing may have no counterpart, and may have others beside it. So no pair is believed: what
is compared is how well all of them fit when the LiDAR is turned by each of TURNS, and when it is
not. With the chance p that the other sensor shows a thing at all, c others a degree by chance and
a normal density f, the offsets d of one thing are (Bar-Shalom, Daum and Huang, "The Probabilistic
Data Association Filter", IEEE Control Systems 29(6), 2009)

    1 - p + p sum f(d - turn) / c

times as likely as others by chance alone. The logarithm of that, less the same without a turn, is
summed over the things of a frame and over frames, and never falls below zero: Page's cumulative sum
("Continuous Inspection Schemes", Biometrika 41, 1954), which tells a change as soon as may be for a
given rate of false alarms. At SURE it is told. What is above MOST is taken from all turns alike, so
that it is over soon when the sensors agree again.

* The thing that speaks most for a turn is left out of every frame: one that the other sensor does
  not show, beside one that only the other shows, looks like a turn for as long as both are there.
* A LiDAR that is turned lies off from all others, any other sensor only from the LiDAR. The one of
  which that explains most is suspected, and those of which it explains nearly as much. Of two
  sensors nobody knows which is turned: both are.
* A frame without anything to compare says nothing, so what was told holds until the sensors agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Offsets: TypeAlias = Sequence[Sequence[float]]

BASE = "lidar"
TURNS = tuple(turn for turn in range(-8, 9) if abs(turn) >= 3)  # degrees: smaller ones are noise
WITHIN = 12.0  # degrees: what is further apart is not compared
SURE, MOST = 15.0, 60.0
ALIKE = 0.55  # part of the most evidence that makes another sensor suspected, too
THINGS_MAX, OFFSETS_MAX = 64, 16


class Kind(NamedTuple):
    """How another sensor's directions compare with a LiDAR's.

    Attributes:
        sigma: standard deviation between two that are of one thing, degrees.
        shown: the chance that it shows a thing that the LiDAR shows.
        clutter: other things that it shows, a degree, at least.
    """

    sigma: float
    shown: float
    clutter: float


KINDS: Mapping[str, Kind] = {"camera": Kind(0.8, 0.5, 0.06), "radar": Kind(1.2, 0.6, 0.06)}


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn that is told.

    Attributes:
        suspects: the sensors one of which is turned, the likelier first.
        degrees: by which the LiDAR's things lie to the left of the others'.
        against: the sensors that it was compared with.
    """

    suspects: tuple[str, ...]
    degrees: float
    against: tuple[str, ...]

    def __str__(self) -> str:
        side = "left" if self.degrees > 0 else "right"
        others = " and ".join(self.against)
        what = f"the lidar sees things {abs(self.degrees):g} degrees to the {side} of the {others}"
        return f"{what}: check the mounting of the {' or the '.join(self.suspects)}"


@dataclass(frozen=True, slots=True)
class Bearings:
    """What is known so far.

    Attributes:
        evidence: for each sensor compared so far, and for the LiDAR, the cumulative sum for each of
            TURNS.
    """

    evidence: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def after(self, offsets: Mapping[str, Offsets]) -> Bearings:
        """Return what is known after a frame.

        Args:
            offsets: by sensor, for each thing that the LiDAR showed how far to the left of things
                of that sensor it lies, degrees; of none that is further off than WITHIN.
        """
        own = {name: _evidence(things, KINDS[name]) for name, things in offsets.items()}
        if not own:
            return self
        own[BASE] = np.sum(list(own.values()), axis=0)
        summed = {name: self._summed(name, more) for name, more in own.items()}
        return Bearings({**self.evidence, **summed})

    @property
    def peaks(self) -> Mapping[str, float]:
        """How much speaks for each sensor being turned."""
        return {name: max(sums) for name, sums in self.evidence.items()}

    @property
    def turned(self) -> Turned | None:
        """The turn that is known; None while too little speaks for one."""
        peaks = self.peaks
        names = sorted(peaks, key=lambda name: -peaks[name])
        if not names or peaks[names[0]] < SURE:
            return None
        sums, most = self.evidence[names[0]], peaks[names[0]]
        suspects = tuple(name for name in names if peaks[name] > ALIKE * most)
        against = tuple(sorted(peaks.keys() - {BASE}))
        return Turned(suspects, float(TURNS[sums.index(most)]), against)

    def _summed(self, name: str, more: NDArray[np.float64]) -> tuple[float, ...]:
        known = self.evidence.get(name, (0.0,) * len(TURNS))
        sums = np.maximum(0.0, known + more)
        return tuple(np.maximum(0.0, sums - max(0.0, sums.max() - MOST)).tolist())


def _evidence(things: Offsets, kind: Kind) -> NDArray[np.float64]:
    """Return what the things of one frame say for each turn, without the one that says most."""
    said = [_of_thing(offsets[:OFFSETS_MAX], kind) for offsets in things[:THINGS_MAX] if offsets]
    if not said:
        return np.zeros(len(TURNS))
    ranked = np.sort(said, axis=0)
    return np.asarray(ranked[:-1].sum(axis=0) + np.minimum(0.0, ranked[-1]))


def _of_thing(offsets: Sequence[float], kind: Kind) -> NDArray[np.float64]:
    """Return the logarithm of how much better its offsets fit each turn than none."""
    clutter = max(kind.clutter, len(offsets) / (2 * WITHIN))
    apart = np.subtract.outer((0.0, *TURNS), np.sort(offsets)) / kind.sigma
    density = np.exp(-(apart**2) / 2).sum(axis=1) / (math.sqrt(math.tau) * kind.sigma)
    fit = np.log(1 - kind.shown + kind.shown * density / clutter)
    return np.asarray(fit[1:] - fit[0])

"""What one look of one sensor does to the tracks: the words that the sensor models share.

A look is a message made ready once, when it comes: in the tracker's frame, without what cannot be
used. A sensor model takes the tracks, predicted to its time, and returns them judged, together with
those that it starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.stages.fusion.hypothesis import Hypothesis

TARGET_HITS = 2  # times as many looks confirm a track that only radar has shown


@dataclass(frozen=True, slots=True)
class Rules:
    """When a measurement may belong to a track, and when a track is confirmed.

    Attributes:
        gate: probability that a true measurement falls within the gate.
        hits, existence: fewest looks that showed a confirmed track, its least existence.
    """

    gate: float
    hits: int
    existence: float

    @property
    def gate_squared(self) -> float:
        """Chi-square quantile of two dimensions."""
        return -2 * math.log(1 - self.gate)

    def judged(self, one: Hypothesis) -> Hypothesis:
        """Return the hypothesis, confirmed if it was seen often enough."""
        if one.confirmed or one.existence < self.existence:
            return one
        needed = TARGET_HITS * self.hits if math.isnan(one.nearest_x) else self.hits
        return replace(one, confirmed=True) if one.hits >= needed else one


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the measurements of one look.

    Attributes:
        residual: median over the matched pairs; None without any.
    """

    capture_ns: int
    measurements: int = 0
    matched: int = 0
    dropped: int = 0
    residual: float | None = None
    anomaly: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The tracks after a look, in the order they came in, and those that it started."""

    known: list[Hypothesis]
    started: list[Hypothesis]
    outcome: Outcome

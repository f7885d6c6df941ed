"""How well a camera and the tracks fit together: the one thing that tells a wrong transform.

Each pair of a box in the image and a projected track has an error of its own; what all have in
common is the transform between the sensors. So the median of a look's pairs is smoothed over looks,
and so is the share of pairs that fit at all. A transform that was wrong from the beginning shows in
the first, one that changed on the road (a camera was hit) in the second as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

PAIRS_MIN = 12  # before anything is said about a transform
SMOOTHED_SECONDS, USUAL_SECONDS = 1.0, 5.0
SHARE_DROP = 0.7


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well camera and tracks fit together, smoothed over looks.

    Attributes:
        pairs: how many pairs it rests on so far.
        residual: median distance of a pair, pixels.
        share, usual: part of the pairs that pass the gate, over about a second and about 5 s.
        at_ns: when it was last brought up to date.
    """

    pairs: int = 0
    residual: float = 0.0
    share: float = 1.0
    usual: float = 1.0
    at_ns: int = 0

    def after(self, at_ns: int, share: float, apart: Sequence[float]) -> Agreement:
        """Return the agreement after a look: its share, and the distances of its pairs, pixels."""
        seconds = max(0, at_ns - self.at_ns) / NS_PER_S if self.pairs else math.inf
        slow = 1 - math.exp(-seconds / USUAL_SECONDS)
        quick = 1 - math.exp(-seconds / SMOOTHED_SECONDS)
        residual = self.residual
        if apart:
            residual += max(quick, 1 / (self.pairs + 1)) * (float(np.median(apart)) - residual)
        return Agreement(
            pairs=self.pairs + len(apart),
            residual=residual,
            share=self.share + quick * (share - self.share),
            usual=self.usual + slow * (share - self.usual),
            at_ns=at_ns,
        )

    def anomaly(self, residual_max: float) -> str:
        """Return what is wrong, or ""; a few pairs tell nothing."""
        if self.pairs < PAIRS_MIN:
            return ""
        if self.residual > residual_max:
            return (
                f"boxes lie {self.residual:.0f} px from where the tracks are projected, "
                f"expected at most {residual_max:.0f}: check the transform to the camera"
            )
        if self.share < SHARE_DROP * self.usual:
            return (
                f"{self.share:.0%} of the boxes fit the tracks, {self.usual:.0%} did before: "
                "check the transform to the camera"
            )
        return ""

"""Radar returns: where something reflects, and how fast that place comes nearer or goes away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Targets:
    """What a radar saw in one cycle, N targets; none means that nothing was seen.

    What a sensor does not measure is NaN: an imaging radar without Doppler has no `range_rate`.

    Attributes:
        xy: (N, 2) float32, metres, frame of the message's stamp: x forward, y left.
        sigma: (N, 2) float32, metres: standard deviation along the line of sight and across it;
            NaN where the sensor does not tell.
        range_rate: (N,) float32, m/s relative to the sensor, positive away from it.
        velocity: (N, 2) float32, m/s relative to the sensor along x and y, of a tracking radar.
        strength: (N,) float32, dB, or whatever the sensor calls the power of a return.
        ids: (N,) int64: the sensor's own number of a thing it tracks; -1 for a single return.
        left_out: how many more there were that are not told: positions that are no numbers, and
            those beyond the most that a stage gives.
    """

    xy: NDArray[np.float32]
    sigma: NDArray[np.float32]
    range_rate: NDArray[np.float32]
    velocity: NDArray[np.float32]
    strength: NDArray[np.float32]
    ids: NDArray[np.int64]
    left_out: int = 0

    @property
    def count(self) -> int:
        return len(self.xy)

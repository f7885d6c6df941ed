"""The ground, and a road on it: where (along, aside) is in the world, and how the ground lies.

World frame: x east, y north, z up, metres. The reference line of the road is the boundary between
its two directions; `s` is the way along it from where the drive begins, `d` the distance to its
left. Traffic keeps to the right, so lanes of the vehicle's direction have negative `d`.

The line's curvature is a sum of two sine waves of `s`; heading is its integral in closed form, the
place the integral of that by the trapezoidal rule on a fine table. The ground is a sum of plane
waves, so its height and gradient are known everywhere without knowing the road, and the road has
slope and bank as it leads over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LANE_WIDTH = 3.5  # metres
INNER_LANE, OUTER_LANE, ONCOMING_LANE = -LANE_WIDTH / 2, -1.5 * LANE_WIDTH, LANE_WIDTH / 2
PARKING = -8.2  # metres: middle of the parking strip
ROAD_RIGHT, ROAD_LEFT = -9.3, 4.0  # metres: its edges
BEHIND, AHEAD = -800.0, 1200.0  # metres of reference line: who comes towards it goes far back
STEP = 0.5  # metres of the table
SEARCHES = 4  # Newton steps of `project`


class Wave(NamedTuple):
    """A plane wave of the ground: height in metres, wave numbers in rad/m, phase in radians."""

    height: float
    kx: float
    ky: float
    phase: float


class Bend(NamedTuple):
    """A sine wave of the curvature: its peak in 1/m, its length in metres, phase in radians."""

    curvature: float
    length: float
    phase: float


@dataclass(frozen=True)
class Ground:
    """Height and gradient of the ground."""

    waves: tuple[Wave, ...] = ()

    def height(self, x: Array, y: Array) -> Array:
        """Return the height at places of any shape, metres."""
        total = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
        for wave in self.waves:
            total += wave.height * np.sin(wave.kx * x + wave.ky * y + wave.phase)
        return total

    def gradient(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return how the height grows along x and along y, without unit."""
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        along_x, along_y = np.zeros(shape), np.zeros(shape)
        for wave in self.waves:
            growth = wave.height * np.cos(wave.kx * x + wave.ky * y + wave.phase)
            along_x += wave.kx * growth
            along_y += wave.ky * growth
        return along_x, along_y


@dataclass(frozen=True)
class Road:
    """A road on a ground."""

    ground: Ground = field(default_factory=Ground)
    bends: tuple[Bend, ...] = ()

    def __post_init__(self) -> None:
        s = np.arange(BEHIND, AHEAD + STEP, STEP)
        heading = self._heading(s)
        half = STEP / 2
        x = np.concatenate([[0.0], np.cumsum((np.cos(heading[1:]) + np.cos(heading[:-1])) * half)])
        y = np.concatenate([[0.0], np.cumsum((np.sin(heading[1:]) + np.sin(heading[:-1])) * half)])
        zero = int(np.searchsorted(s, 0.0))
        object.__setattr__(self, "_table", (s, x - x[zero], y - y[zero], heading))

    def place(self, s: Array, d: Array) -> tuple[Array, Array, Array]:
        """Return x, y and the road's heading, radians, at places along and aside."""
        table: tuple[Array, Array, Array, Array] = self._table  # type: ignore[attr-defined]
        heading = np.interp(s, table[0], table[3])
        x = np.interp(s, table[0], table[1]) - np.sin(heading) * d
        y = np.interp(s, table[0], table[2]) + np.cos(heading) * d
        return x, y, heading

    def curvature(self, s: Array) -> Array:
        """Return the curvature of the reference line, 1/m, left positive."""
        total = np.zeros(np.shape(s))
        for bend in self.bends:
            total += bend.curvature * np.sin(2 * np.pi * s / bend.length + bend.phase)
        return total

    def project(self, x: float, y: float, s: float) -> tuple[float, float]:
        """Return where a place is along and aside the road, looking near `s`."""
        for _ in range(SEARCHES):
            at_x, at_y, heading = (float(one[0]) for one in self.place(np.array([s]), np.zeros(1)))
            dx, dy = x - at_x, y - at_y
            s += dx * np.cos(heading) + dy * np.sin(heading)
            d = dy * np.cos(heading) - dx * np.sin(heading)
        return float(s), float(d)

    def _heading(self, s: Array) -> Array:
        """Return the integral of the curvature, zero where the drive begins."""
        total = np.zeros(np.shape(s))
        for bend in self.bends:
            rate = 2 * np.pi / bend.length
            total += bend.curvature / rate * (np.cos(bend.phase) - np.cos(rate * s + bend.phase))
        return total


def make_road(rng: np.random.Generator) -> Road:
    """Return a gently winding road over low hills: radii above 500 m, slopes up to about 4 %."""
    waves = []
    for height, length in ((1.6, 330.0), (0.7, 190.0), (0.25, 120.0)):
        turn, phase = rng.uniform(0, 2 * np.pi, 2).tolist()
        number = 2 * np.pi / (length * float(rng.uniform(0.85, 1.2)))
        waves.append(Wave(height, number * np.cos(turn), number * np.sin(turn), phase))
    first, second = rng.uniform(0, 2 * np.pi, 2).tolist()
    sharp = float(rng.uniform(0.3, 1.0))
    bends = (Bend(sharp / 750, 420.0, first), Bend(sharp / 1800, 160.0, second))
    return Road(Ground(tuple(waves)), bends)

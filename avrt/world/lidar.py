"""A spinning LiDAR, ray by ray: the first thing each beam meets, with noise and lost returns.

The front 90 degrees of a sweep, as the KITTI benchmark keeps them. Every ray of a sweep is cast at
its stamp: the world stands still for the sweep. Noise is drawn from one generator for each (seed,
time), so a frame does not depend on which frames were made before.

Method: slabs (Kay and Kajiya, "Ray Tracing Complex Scenes", SIGGRAPH 1986) for boxes along the
axes, over only the columns that a box can cover.

Shape letters: A azimuth columns, E elevation channels, N returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.payload import PointCloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.payload import Box
    from avrt.world.scene import Scene

COLUMNS = 450
CHANNELS = 40
RANGE_MIN, RANGE_MAX = 1.0, 90.0  # metres
RANGE_NOISE = 0.02  # metres, one standard deviation
LOST = 0.02  # share of beams that come back empty
CLEARANCE = 0.2  # metres of air under a vehicle
INTENSITY_ROAD, INTENSITY_VEHICLE, INTENSITY_POLE = 0.2, 0.6, 0.9

AZIMUTHS = np.linspace(-np.pi / 4, np.pi / 4, COLUMNS)
ELEVATIONS = np.deg2rad(np.linspace(-24.8, 2.0, CHANNELS))


def sweep(scene: Scene, at_ns: int) -> PointCloud:
    """Return what the LiDAR sees at this time, ns since the scene's start.

    xyz: (N, 3) float32, metres, LiDAR frame; intensity: (N,) float32, 0 to 1.
    """
    rng = np.random.default_rng((scene.seed, at_ns))
    directions = _directions()
    ranges = _road(scene, directions)
    intensity = np.full(ranges.shape, INTENSITY_ROAD)
    for truth in scene.truth(at_ns):
        _cast(directions, truth.box, CLEARANCE, ranges, intensity, INTENSITY_VEHICLE)
    for box in scene.pole_boxes(at_ns):
        _cast(directions, box, 0.0, ranges, intensity, INTENSITY_POLE)
    kept = (ranges > RANGE_MIN) & (ranges < RANGE_MAX) & (rng.random(ranges.shape) >= LOST)
    noisy = ranges[kept] + rng.normal(0.0, RANGE_NOISE, int(kept.sum()))
    shade = intensity[kept] * rng.uniform(0.8, 1.1, len(noisy))
    xyz = directions[kept] * noisy[:, None]
    return PointCloud(xyz.astype(np.float32), shade.astype(np.float32))


def _directions() -> NDArray[np.float64]:
    """Return unit vectors of all beams: (A, E, 3)."""
    azimuth, elevation = np.meshgrid(AZIMUTHS, ELEVATIONS, indexing="ij")
    flat = np.cos(elevation)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], axis=-1)


def _road(scene: Scene, directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the range at which each beam meets the road, inf for the sky: (A, E) metres."""
    towards = scene.slope * directions[..., 0] - directions[..., 2]
    with np.errstate(divide="ignore"):
        return np.where(towards > 0, scene.sensor_height / towards, np.inf)


def _cast(
    directions: NDArray[np.float64],
    box: Box,
    clearance: float,
    ranges: NDArray[np.float64],
    intensity: NDArray[np.float64],
    shade: float,
) -> None:
    """Shorten `ranges`, (A, E) metres, where a beam meets this box first."""
    low = np.array([box.x - box.length / 2, box.y - box.width / 2, box.z - box.height / 2])
    high = np.array([box.x + box.length / 2, box.y + box.width / 2, box.z + box.height / 2])
    low[2] += clearance
    columns = _columns(low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = low / directions[columns], high / directions[columns]
    enter = np.minimum(first, second).max(axis=-1)
    leave = np.maximum(first, second).min(axis=-1)
    met = (enter > 0) & (enter <= leave) & (enter < ranges[columns])
    ranges[columns][met] = enter[met]
    intensity[columns][met] = shade


def _columns(low: NDArray[np.float64], high: NDArray[np.float64]) -> slice[int, int, None]:
    """Return the azimuth columns that a box can cover; all of them for one beside the sensor."""
    if high[0] < RANGE_MIN or low[0] > RANGE_MAX:
        return slice(0, 0, None)
    if low[0] <= 0:
        return slice(0, COLUMNS, None)
    corners = np.arctan2([low[1], low[1], high[1], high[1]], [low[0], high[0], low[0], high[0]])
    start = int(np.searchsorted(AZIMUTHS, corners.min()))
    end = int(np.searchsorted(AZIMUTHS, corners.max(), side="right"))
    return slice(start, end, None)

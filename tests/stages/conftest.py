"""Synthetic sweeps: a small ray caster over a road that may climb and boxes that stand on it."""

from __future__ import annotations

import numpy as np
import pytest

from avrt.model.message import Message, Stamp
from avrt.payload import Box, PointCloud

SENSOR_HEIGHT = 1.73
AZIMUTH = np.deg2rad(np.arange(-45, 45, 0.4))
ELEVATION = np.deg2rad(np.arange(-22, 2.1, 0.6))


def cast(boxes=(), slope=0.0, slope_from=0.0):
    """Return (N, 3) float32 points of a front-facing LiDAR at the origin.

    The road is flat to `slope_from` metres ahead, then climbs by `slope`; boxes are placed by
    their own z.
    """
    azimuth, elevation = (grid.ravel() for grid in np.meshgrid(AZIMUTH, ELEVATION))
    rays = np.stack(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ],
        axis=1,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = np.where(rays[:, 2] < 0, -SENSOR_HEIGHT / rays[:, 2], np.inf)
        flat = np.where(flat * rays[:, 0] <= slope_from, flat, np.inf)
        ramp = (-SENSOR_HEIGHT - slope * slope_from) / (rays[:, 2] - slope * rays[:, 0])
        ramp = np.where((ramp > 0) & (ramp * rays[:, 0] > slope_from), ramp, np.inf)
    hit = np.minimum(flat, ramp)
    for box in boxes:
        hit = np.minimum(hit, _box_hit(rays, box))
    near = hit < 80
    return (rays[near] * hit[near, None]).astype(np.float32)


def _box_hit(rays, box: Box):
    cos, sin = np.cos(box.yaw), np.sin(box.yaw)
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    origin = turn @ -np.array([box.x, box.y, box.z])
    local = rays @ turn.T
    half = np.array([box.length, box.width, box.height]) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (-half - origin) / local, (half - origin) / local
    enter = np.nanmax(np.minimum(first, second), axis=1)
    leave = np.nanmin(np.maximum(first, second), axis=1)
    return np.where((enter <= leave) & (enter > 0), enter, np.inf)


@pytest.fixture
def scan():
    return cast


@pytest.fixture
def sent():
    """Return a message of a payload, captured at a time in seconds."""

    def make(payload, at_s=0.0, sequence=0, frame="lidar"):
        at_ns = round(at_s * 1e9)
        return Message(Stamp("test", sequence, at_ns, at_ns, at_ns, frame), payload)

    return make


@pytest.fixture
def sweep(sent):
    def make(xyz):
        return sent(PointCloud(np.asarray(xyz, np.float32).reshape(-1, 3)))

    return make

"""A small world for the tracker: cars on a plane, seen exactly or with noise by every sensor.

The vehicle starts at the origin along x and drives an arc. The tracker's frame is `lidar`, 1 m
ahead of the vehicle's origin; the radar sits 2 m further ahead, the camera looks along x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from avrt.model.frames import Frames, TransformSpec
from avrt.model.message import Message, Stamp
from avrt.payload import (
    Box,
    CameraInfo,
    Detection,
    Detections,
    EgoMotion,
    ImageDetections,
    Targets,
)

SIZE = (1200, 400)
FOCAL = 700.0
LEVER, RADAR_AHEAD = 1.0, 2.0
PROJECTION = np.array([[FOCAL, 0, 600, 0], [0, FOCAL, 200, 0], [0, 0, 1, 0]], np.float64)
LOOK_AHEAD = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]], np.float64)


def frames(camera_yaw=0.0):
    """Return the transforms; the camera's is wrong by `camera_yaw` radians."""
    cos, sin = math.cos(camera_yaw), math.sin(camera_yaw)
    turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]) @ LOOK_AHEAD.T
    camera = np.column_stack([turn, [0.0, 0.0, 0.0]]).ravel().tolist()

    def ahead(x):
        return (1.0, 0.0, 0.0, x, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)

    return Frames(
        [
            TransformSpec(parent="base", child="lidar", matrix=ahead(LEVER)),
            TransformSpec(parent="lidar", child="radar", matrix=ahead(RADAR_AHEAD)),
            TransformSpec(parent="lidar", child="camera", matrix=tuple(camera)),
        ]
    )


@dataclass(frozen=True)
class Car:
    """A car in the world's frame at time 0, m and m/s."""

    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0

    def at(self, t):
        return self.x + self.vx * t, self.y + self.vy * t


class Traffic:
    def __init__(self, cars, speed=0.0, yaw_rate=0.0, seed=None):
        self.cars, self.speed, self.yaw_rate = cars, speed, yaw_rate
        self.rng = None if seed is None else np.random.default_rng(seed)

    def noise(self, sigma):
        return 0.0 if self.rng is None else float(self.rng.normal(0, sigma))

    def pose(self, t):
        """Return x, y and yaw of the vehicle's origin."""
        yaw = self.yaw_rate * t
        if abs(yaw) < 1e-9:
            return self.speed * t, 0.0, yaw
        radius = self.speed / self.yaw_rate
        return radius * math.sin(yaw), radius * (1 - math.cos(yaw)), yaw

    def seen_from(self, t, ahead):
        """Return x, y, vx, vy and yaw of each car, from a frame `ahead` of the vehicle's origin."""
        x0, y0, yaw = self.pose(t)
        cos, sin = math.cos(yaw), math.sin(yaw)
        for car in self.cars:
            x, y = car.at(t)
            dx, dy = x - x0, y - y0
            heading = math.atan2(car.vy, car.vx) if math.hypot(car.vx, car.vy) else 0.0
            yield (
                cos * dx + sin * dy - ahead,
                cos * dy - sin * dx,
                cos * car.vx + sin * car.vy,
                cos * car.vy - sin * car.vx,
                heading - yaw,
            )

    def lidar(self, t):
        found = []
        for x, y, _, _, yaw in self.seen_from(t, LEVER):
            x, y = x + self.noise(0.1), y + self.noise(0.1)  # noqa: PLW2901
            points = np.array([[x - 2.1, y, -1.0]], np.float32)
            found.append(
                Detection(Box(x, y, -1.0, 4.2, 1.75, 1.5, yaw), "car", 0.8, points, 50, x - 2.1)
            )
        return self.message("lidar", t, Detections(tuple(found)))

    def radar(self, t, *, doppler=True, spots=(0.0,), extra=()):
        """Return targets on the near side of each car, `spots` metres beside its middle."""
        ahead = LEVER + RADAR_AHEAD
        own = np.array([self.speed, self.yaw_rate * ahead])
        xy, rate = [], []
        for x, y, vx, vy, yaw in self.seen_from(t, ahead):
            for spot in spots:
                side = math.copysign(2.1, x * math.cos(yaw) + y * math.sin(yaw))
                at = np.array([x, y]) - side * np.array([math.cos(yaw), math.sin(yaw)])
                at += spot * np.array([-math.sin(yaw), math.cos(yaw)])
                sight = at / np.linalg.norm(at)
                xy.append(at + np.array([self.noise(0.2), self.noise(0.4)]))
                rate.append(sight @ (np.array([vx, vy]) - own) + self.noise(0.1))
        for x, y, v in extra:
            xy.append(np.array([x, y]))
            rate.append(v)
        return self.message("radar", t, targets(xy, rate if doppler else None))

    def camera(self, t, *, miss=False):
        boxes = []
        for x, y, _, _, yaw in self.seen_from(t, LEVER):
            if miss or x < 5:
                continue
            cos, sin = math.cos(yaw), math.sin(yaw)
            corners = np.array(
                [
                    (x + a * cos - b * sin, y + a * sin + b * cos, c)
                    for a in (-2.1, 2.1)
                    for b in (-0.875, 0.875)
                    for c in (-1.75, -0.25)
                ]
            )
            ends = corners @ LOOK_AHEAD.T
            uv = ends[:, :2] / ends[:, 2:] * FOCAL + [600, 200]
            box = np.concatenate([uv.min(axis=0), uv.max(axis=0)]) + self.noise(2.0)
            if box[0] > 0 and box[2] < SIZE[0]:
                boxes.append(box)
        info = CameraInfo(*SIZE, PROJECTION)
        count = len(boxes)
        found = ImageDetections(
            np.array(boxes, np.float32).reshape(-1, 4),
            np.full(count, 0.9, np.float32),
            ("car",) * count,
            *SIZE,
            info,
        )
        return self.message("camera", t, found)

    def ego(self, t):
        x, y, yaw = self.pose(t)
        motion = EgoMotion(x, y, yaw, self.speed, self.yaw_rate, np.eye(2) * 0.01, ("can",))
        return self.message("base", t, motion)

    @staticmethod
    def message(frame, t, payload):
        at_ns = round(t * 1e9)
        return Message(Stamp(frame, round(t * 1000), at_ns, at_ns, at_ns, frame), payload)


def targets(xy, rate=None):
    count = len(xy)
    return Targets(
        xy=np.array(xy, np.float32).reshape(-1, 2),
        sigma=np.tile(np.array([0.3, 0.5], np.float32), (count, 1)),
        range_rate=np.full(count, np.nan, np.float32) if rate is None else np.float32(rate),
        velocity=np.full((count, 2), np.nan, np.float32),
        strength=np.zeros(count, np.float32),
        ids=np.full(count, -1, np.int64),
    )

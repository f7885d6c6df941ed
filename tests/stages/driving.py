"""A vehicle that drives as told, and what its sensors say about it; shared by ego motion tests."""

from __future__ import annotations

import math

import numpy as np

from avrt.model.message import Message, Stamp
from avrt.payload import Fix, Imu, Speed
from avrt.stages.ego.geodesy import ECCENTRICITY_SQUARED, SEMI_MAJOR

LATITUDE, LONGITUDE = 49.0, 8.4
STEP = 0.001  # seconds
UNKNOWN = np.full(3, np.nan)


def drive(seconds, speed, yaw_rate=lambda _: 0.0):
    """Return t, x, y, yaw, speed, yaw rate and acceleration of a drive, (T, 7), every STEP."""
    t = np.arange(0, seconds + STEP / 2, STEP)
    v, r = np.array([speed(s) for s in t]), np.array([yaw_rate(s) for s in t])
    yaw = np.concatenate([[0.0], np.cumsum((r[1:] + r[:-1]) / 2 * STEP)])
    vx, vy = v * np.cos(yaw), v * np.sin(yaw)
    x = np.concatenate([[0.0], np.cumsum((vx[1:] + vx[:-1]) / 2 * STEP)])
    y = np.concatenate([[0.0], np.cumsum((vy[1:] + vy[:-1]) / 2 * STEP)])
    return np.stack([t, x, y, yaw, v, r, np.gradient(v, STEP)], axis=1)


def message(name, sequence, at_s, payload, frame=""):
    at_ns = round(at_s * 1e9)
    return Message(Stamp(name, sequence, at_ns, at_ns, at_ns, frame), payload)


def sampled(path, rate):
    every = round(1 / rate / STEP)
    return path[::every]


def imu_messages(path, rng, rate=50.0, bias=0.0, sigma=0.01, start=0):
    result = []
    for k, (t, _, _, _, _, r, a) in enumerate(sampled(path, rate)):
        acceleration = np.array([a + rng.normal(0, 0.3), 0.0, 9.81])
        rate_z = r + bias + rng.normal(0, sigma)
        result.append(
            ("imu", message("imu", start + k, t, Imu(acceleration, np.array([0.0, 0.0, rate_z]))))
        )
    return result


def speed_messages(path, rng, rate=20.0, scale=1.0, sigma=0.1):
    return [
        ("speed", message("speed", k, row[0], Speed(scale * row[4] + rng.normal(0, sigma))))
        for k, row in enumerate(sampled(path, rate))
    ]


def fix(x, y, course=0.7, sigma=UNKNOWN):
    """Return the fix at a place of a drive that began in direction `course` from the east."""
    cos, sin = math.cos(course), math.sin(course)
    east, north = x * cos - y * sin, x * sin + y * cos
    phi = math.radians(LATITUDE)
    across = 1 - ECCENTRICITY_SQUARED * math.sin(phi) ** 2
    radius = SEMI_MAJOR / math.sqrt(across)
    latitude = LATITUDE + math.degrees(north / (radius * (1 - ECCENTRICITY_SQUARED) / across))
    longitude = LONGITUDE + math.degrees(east / (radius * math.cos(phi)))
    return Fix(latitude, longitude, math.nan, sigma, valid=True)


def gnss_messages(path, rng, rate=10.0, sigma=0.5):
    result = []
    for k, (t, x, y, *_) in enumerate(sampled(path, rate)):
        dx, dy = rng.normal(0, sigma, 2)
        result.append(("gnss", message("gnss", k, t, fix(x + dx, y + dy))))
    return result


def in_order(*streams):
    return sorted(
        (one for stream in streams for one in stream),
        key=lambda one: (one[1].stamp.capture_ns, one[0]),
    )


def run(stage, messages):
    """Return the motion after each message."""
    return [stage.process(**{name: one}) for name, one in messages]

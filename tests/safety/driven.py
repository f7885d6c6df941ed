"""Lists of objects and plans, made by hand."""

import numpy as np

from avrt.payload import Box, Plan, Track, Tracks


def track(number, x, y, label="car", vx=0.0):
    box = Box(x, y, 0.8, 4.0, 1.8, 1.6, 0.0)
    none = np.zeros((0, 3), np.float32)
    eye = np.eye(5)
    return Track(number, label, box, vx, 0.0, 0.0, eye, 1.0, 9, 0, True, ("lidar",), x - 2, none)


def scene(*tracks):
    return Tracks(tuple(tracks), 10.0)


def plan(speed=10.0, braking=0.0, aside=0.0, kind="cruise"):
    t = np.arange(21) / 4
    v = np.maximum(speed - braking * t, 0.0)
    x = np.concatenate([[0.0], np.cumsum((v[1:] + v[:-1]) / 2 * 0.25)])
    y = aside * np.clip(t / 5, 0, 1) ** 2
    zero = np.zeros_like(t)
    return Plan(t, np.stack([x, y], axis=1), zero, v, zero - braking, zero, kind, None, None)

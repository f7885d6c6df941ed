# ruff: noqa: INP001 - a pipeline file loads it by its path
"""How fast may the vehicle go, by three codes that share nothing, and what it does about it.

A radar sees what is ahead. The permitted speed is one from which the vehicle stops before the
nearest thing in its corridor: reaction R, braking B, distance d, so v R + v^2 / (2 B) = d. One code
solves that equation, one searches for the root, one looks it up in a table.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avrt import Stage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Speed, Targets

REACTION, BRAKING = 0.5, 4.0  # seconds, m/s^2
HALF_WIDTH, NEAR, FAR = 1.5, 1.0, 120.0  # metres: the corridor
CRUISE = 20.0  # m/s, on a free road
PERIOD = 0.05  # seconds between two plans
COMFORT, HARD = 2.0, 6.0  # m/s^2


def solved(targets: Message[Targets]) -> float:
    """The positive root, for all targets at once."""
    xy = targets.payload.xy.astype(np.float64)
    ahead = (np.abs(xy[:, 1]) < HALF_WIDTH) & (xy[:, 0] > NEAR) & (xy[:, 0] < FAR)
    distances = xy[ahead, 0] - NEAR
    bt = BRAKING * REACTION
    speeds = np.sqrt(bt * bt + 2 * BRAKING * distances) - bt
    return float(min(CRUISE, speeds.min(initial=CRUISE)))


class Tested(Stage):
    """The same, and a test of what is decided: nobody may go faster than on a free road."""

    def process(self, targets: Message[Targets]) -> float:
        return solved(targets)

    def accepts(self, output: float, previous: float | None) -> bool:
        del previous
        return 0.0 <= output <= CRUISE


def searched(targets: Message[Targets]) -> float:
    """Bisection, target by target, from the last one to the first."""
    permitted = CRUISE
    for x, y in reversed(targets.payload.xy.tolist()):
        if not (-HALF_WIDTH < y < HALF_WIDTH and NEAR < x < FAR):
            continue
        low, high = 0.0, permitted
        if _way(high) <= x - NEAR:
            continue
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if _way(middle) <= x - NEAR else (low, middle)
        permitted = low
    return permitted


def _way(speed: float) -> float:
    return speed * REACTION + speed * speed / (2 * BRAKING)


class LookedUp(Stage):
    """A table of stopping distances, made before time starts, and one step of Newton from there."""

    def warm(self) -> None:
        self.speeds = np.linspace(0.0, CRUISE, 2001)
        self.ways = self.speeds * (REACTION + self.speeds / (2 * BRAKING))

    def weight_arrays(self) -> list[NDArray[np.float64]]:
        return [self.speeds, self.ways]

    def process(self, targets: Message[Targets]) -> float:
        nearest = math.inf
        for x, y in targets.payload.xy.tolist():
            if abs(y) < HALF_WIDTH and NEAR < x < FAR:
                nearest = min(nearest, x)
        distance = min(nearest - NEAR, self.ways[-1])
        speed = float(np.interp(distance, self.ways, self.speeds))
        return min(CRUISE, speed - (_way(speed) - distance) / (REACTION + speed / BRAKING))


def thinned(targets: Message[Targets]) -> Targets:
    """Look at the ten nearest targets only: what a processor without an accelerator can do."""
    found = targets.payload
    nearest = np.argsort(np.hypot(*found.xy.T), kind="stable")[:10]
    names = ("xy", "sigma", "range_rate", "velocity", "strength", "ids")
    return replace(found, **{name: getattr(found, name)[nearest] for name in names})


def counted(targets: Message[Targets]) -> dict[str, float]:
    """For the driver's screen: how many targets there are, and how far the nearest is."""
    distances = np.hypot(*targets.payload.xy.astype(np.float64).T)
    return {"count": targets.payload.count, "nearest": float(distances.min(initial=FAR))}


def follow(limit: Message[float] | None, speed: Message[Speed] | None) -> dict[str, float]:
    """The speed to have at the next plan: to the permitted one, as gently as may be."""
    now = speed.payload.speed if speed is not None else 0.0
    wanted = limit.payload if limit is not None else 0.0
    change = (wanted - now) / PERIOD
    acceleration = float(np.clip(change, -HARD, COMFORT))
    return {"speed": max(0.0, now + acceleration * PERIOD), "acceleration": acceleration}


def halt(speed: Message[Speed] | None) -> dict[str, float]:
    """The plan to stop: brake, whatever anybody else says."""
    now = speed.payload.speed if speed is not None else 0.0
    return {"speed": max(0.0, now - COMFORT * PERIOD), "acceleration": -COMFORT}

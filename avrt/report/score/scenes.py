"""What was there at the time of a message, in its frame, and which of it could be seen.

Truth lies between its stamps on a straight line (headings the shorter way round); what only one of
two neighbours has is where that one says. Between stamps further apart than `GAP_NS_MAX` nothing is
known, except at the stamps themselves.

An object *counts* if its class is known and it could be seen: at least `POINTS_MIN` LiDAR points of
the nearest sweep lie in its box, as nuScenes asks of its boxes (Caesar et al., CVPR 2020). What
does not count is neither a hit nor a miss, and what is found there is not false. A run without
LiDAR cannot tell: everything counts.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.payload.footprint import contains
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from avrt.logs.truth import TrueScene
    from avrt.model.frames import Frames, Matrix
    from avrt.payload import Box, PointCloud, TrueObject
    from avrt.payload.cloud import Coordinates

    Array = NDArray[np.float64]

POINTS_MIN = 5
GAP_NS_MAX = 500 * NS_PER_MS
SWEEP_NS_MAX = 150 * NS_PER_MS  # a sweep further from a message says nothing about it
SLICE_S = 0.02  # the sensor turns while things move: so much of a sweep is one instant


@dataclass(frozen=True, slots=True)
class Present:
    """One true object in the frame of a message."""

    object: TrueObject
    counts: bool

    @property
    def place(self) -> tuple[float, float]:
        return self.object.box.x, self.object.box.y

    @property
    def distance(self) -> float:
        return math.hypot(*self.place)


class TrueWorld:
    """True objects at any time from the first scene to the last; pipeline ns."""

    def __init__(self, scenes: Sequence[TrueScene], zero_ns: int) -> None:
        """Take the scenes of the first topic; there must be one."""
        self.topic, self.frame = scenes[0].topic, scenes[0].frame
        kept = sorted(
            ((s.stamp_ns - zero_ns, s.truth) for s in scenes if s.topic == self.topic),
            key=lambda item: item[0],
        )
        self.times_ns = [at_ns for at_ns, _ in kept]
        self.scenes = [{one.id: one for one in truth.objects} for _, truth in kept]

    def at(self, at_ns: int) -> list[TrueObject] | None:
        """Return who was where, in the frame of the truth; None where that is not known."""
        after = bisect_left(self.times_ns, at_ns)
        if after < len(self.times_ns) and self.times_ns[after] == at_ns:
            return list(self.scenes[after].values())
        if not 0 < after < len(self.times_ns):
            return None
        from_ns, to_ns = self.times_ns[after - 1], self.times_ns[after]
        if to_ns - from_ns > GAP_NS_MAX:
            return None
        share = (at_ns - from_ns) / (to_ns - from_ns)
        first, second = self.scenes[after - 1], self.scenes[after]
        names = [*first, *(name for name in second if name not in first)]
        return [_between(first.get(name), second.get(name), share) for name in names]


class Sweeps:
    """How many points of each sweep lay in which object; by LiDAR."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[int, dict[int, int]]]] = {}

    @property
    def count(self) -> int:
        return sum(map(len, self._seen.values()))

    def add(
        self, source: str, at_ns: int, cloud: PointCloud, matrix: Matrix, world: TrueWorld
    ) -> None:
        """Count a sweep's points; `matrix` takes them to the frame of the truth."""
        turn, shift = parts(matrix)
        xyz = cloud.xyz @ turn.T.astype(np.float32) + shift.astype(np.float32)
        if cloud.seconds is None or cloud.compensated:
            pieces = [(0.0, xyz)]
        else:
            places = np.floor(np.nan_to_num(cloud.seconds) / SLICE_S).astype(int)
            pieces = [((p + 0.5) * SLICE_S, xyz[places == p]) for p in np.unique(places).tolist()]
        counts: dict[int, int] = {}
        known = False
        for seconds, points in pieces:
            then = world.at(at_ns + round(seconds * NS_PER_S))
            then = world.at(at_ns) if then is None else then
            known = known or then is not None
            for one in then or ():
                counts[one.id] = counts.get(one.id, 0) + _inside(points, one.box)
        if known:
            self._seen.setdefault(source, []).append((at_ns, counts))

    def seen(self, at_ns: int) -> set[int] | None:
        """Return the ids that some LiDAR saw then; None where no sweep is near."""
        found: set[int] | None = None
        for sweeps in self._seen.values():
            place = bisect_right(sweeps, at_ns, key=lambda sweep: sweep[0])
            near = min(
                sweeps[max(0, place - 1) : place + 1], key=lambda sweep: abs(sweep[0] - at_ns)
            )
            if abs(near[0] - at_ns) <= SWEEP_NS_MAX:
                found = (found or set()) | {i for i, n in near[1].items() if n >= POINTS_MIN}
        return found


class Scenes:
    """The truth as messages of any frame and time can be held against it."""

    def __init__(self, world: TrueWorld, sweeps: Sweeps, frames: Frames) -> None:
        self.world = world
        self.sweeps = sweeps
        self._frames = frames

    def matrix(self, frame: str) -> Matrix:
        """Return what takes a point of the truth to a frame; raises DataFault if nothing does."""
        return self._frames.between(self.world.frame, frame or self.world.frame)

    def at(self, at_ns: int) -> list[Present] | None:
        """Return who was where, in the frame of the truth; None where that is not known."""
        found = self.world.at(at_ns)
        if found is None:
            return None
        seen = self.sweeps.seen(at_ns) if self.sweeps.count else {one.id for one in found}
        if seen is None:
            return None
        return [Present(one, one.id in seen and one.label != "unknown") for one in found]

    def in_frame(self, at_ns: int, frame: str) -> list[Present] | None:
        """Return the same in another frame whose z is up."""
        found = self.at(at_ns)
        if found is None:
            return None
        turn, shift = parts(self.matrix(frame))
        yaw = math.atan2(turn[1, 0], turn[0, 0])
        return [replace(p, object=_moved(p.object, turn, shift, yaw)) for p in found]


def on_others(
    there: Sequence[Present],
    places: Sequence[tuple[float, float]],
    pairs: Iterable[tuple[int, int]],
) -> set[int]:
    """Return which found things are at objects that do not count: matched, or inside their box."""
    true_of = {found: there[true] for true, found in pairs}
    others = [one.object.box for one in there if not one.counts]
    return {
        found
        for found, place in enumerate(places)
        if (
            not true_of[found].counts
            if found in true_of
            else any(contains(box, *place, 0.0) for box in others)
        )
    }


def parts(matrix: Matrix) -> tuple[Array, Array]:
    """Return rotation (3, 3) and translation (3,) of a transform."""
    rows = np.array(matrix).reshape(3, 4)
    return rows[:, :3], rows[:, 3]


def _moved(one: TrueObject, turn: Array, shift: Array, yaw: float) -> TrueObject:
    box = one.box
    x, y, z = (turn @ (box.x, box.y, box.z) + shift).tolist()
    vx, vy, _ = (turn @ (one.vx, one.vy, 0.0)).tolist()
    heading = math.remainder(box.yaw + yaw, 2 * math.pi)
    return replace(one, box=replace(box, x=x, y=y, z=z, yaw=heading), vx=vx, vy=vy)


def _between(first: TrueObject | None, second: TrueObject | None, share: float) -> TrueObject:
    if first is None or second is None:
        found = first or second
        assert found is not None
        return found
    a, b = first.box, second.box

    def mean(x: float, y: float) -> float:
        return x + share * (y - x)

    turn = math.remainder(b.yaw - a.yaw, 2 * math.pi)
    yaw = math.remainder(a.yaw + share * turn, 2 * math.pi)
    box = replace(a, x=mean(a.x, b.x), y=mean(a.y, b.y), z=mean(a.z, b.z), yaw=yaw)
    return replace(first, box=box, vx=mean(first.vx, second.vx), vy=mean(first.vy, second.vy))


def _inside(points: Coordinates, box: Box) -> int:
    """Return how many points lie in a box."""
    x, y = points[:, 0] - box.x, points[:, 1] - box.y
    near = np.flatnonzero(x * x + y * y <= (box.length**2 + box.width**2) / 4)
    x, y, z = x[near], y[near], points[near, 2] - box.z
    cos, sin = math.cos(box.yaw), math.sin(box.yaw)
    along, across = cos * x + sin * y, cos * y - sin * x
    inside = (abs(along) <= box.length / 2) & (abs(across) <= box.width / 2)
    return int((inside & (abs(z) <= box.height / 2)).sum())

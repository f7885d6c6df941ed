"""Whether two lists of objects show the same scene, and what to believe if they do not.

Objects are paired within a class group by the distance of their centres, seen from above; a pair
further apart than the gate, or of another speed, size, standing or uncertainty, is none. Lists
agree when nearly all objects of both are paired and none in the way of the vehicle is left over.
They lie as far apart as their worst pair, so of three that agree the odd one is not selected.

Where no two lists agree all objects are kept: to miss a pedestrian costs more than to brake for a
ghost. For the same reason an object in the way is kept that is only in a list which most others
contradict, if they show nothing at its place; one anywhere else is not. Such a list says in the
existence of an object how many show it: a third of what it was for one of three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from avrt.payload import Tracks
from avrt.safety.structure import is_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.payload import Track
    from avrt.safety.agreement import Problem

    Apart: TypeAlias = Callable[[Track, Track], float]

GROUPS = {
    "car": "vehicle",
    "truck": "vehicle",
    "pedestrian": "vulnerable",
    "cyclist": "vulnerable",
}
FAR = 1e6
OBJECTS_MAX = 1000
NEW_IDS = 1_000_000
HORIZON = 2.0  # seconds
ROUNDING = 1e-9  # m^2: a variance may be negative by so much
NO_POINTS = np.zeros((0, 3), np.float32)


@dataclass(frozen=True, slots=True)
class Objects:
    """Lists of tracks.

    Attributes:
        gate, gate_share: metres between the centres of a pair, and share of the range.
        speed: m/s between the velocities of a pair, and between how fast they come closer.
        size: metres between the extents of a pair.
        spread: metres, m/s: between the standard deviations of a pair's place and velocity, and of
            its place HORIZON later.
        turned: radians between the headings of a pair of long objects, front and rear alike.
        ego_speed, yaw_rate: m/s and rad/s between the vehicle's own in two lists.
        share: of the objects of each list that must be paired.
        aside, ahead: the way of the vehicle, metres to each side and ahead.
        max_range: metres; what is further away does not count.
    """

    gate: float = 1.0
    gate_share: float = 0.05
    speed: float = 2.0
    size: float = 1.0
    spread: float = 0.5
    turned: float = 0.35
    ego_speed: float = 0.5
    yaw_rate: float = 0.05
    share: float = 0.9
    aside: float = 2.5
    ahead: float = 60.0
    max_range: float = 100.0

    def problem(self, payload: object) -> Problem:
        if not isinstance(payload, Tracks):
            return "schema"
        if len(payload.objects) > OBJECTS_MAX:
            return "range"
        rows = [replace(track, points=NO_POINTS) for track in payload.objects]
        if not is_finite([rows, payload.ego_speed, payload.yaw_rate]):
            return "nonfinite"
        return "" if all(math.isfinite(s) for t in rows for s in _spreads(t)) else "range"

    def distance(self, a: object, b: object) -> float:
        assert isinstance(a, Tracks)
        assert isinstance(b, Tracks)
        if (
            abs(a.ego_speed - b.ego_speed) > self.ego_speed
            or abs(a.yaw_rate - b.yaw_rate) > self.yaw_rate
        ):
            return math.inf
        ours, theirs = self._in_range(a), self._in_range(b)
        pairs = self._pairs(ours, theirs)
        left = [t for i, t in enumerate(ours) if i not in pairs]
        left += [t for i, t in enumerate(theirs) if i not in set(pairs.values())]
        if any(map(self._is_in_the_way, left)):
            return math.inf
        most = max(len(ours), len(theirs))
        missing = 1 - len(pairs) / most if most else 0.0
        worst = max((self._apart(ours[i], theirs[j]) for i, j in pairs.items()), default=0.0)
        return max(missing / (1 - self.share), worst)

    def settle(self, payloads: Sequence[object]) -> Tracks | None:
        """Return the first list with what only the others show; those get ids of their own."""
        lists = [payload for payload in payloads if isinstance(payload, Tracks)]
        if not lists:
            return None
        merged = list(lists[0].objects)
        for number, one in enumerate(lists[1:], 1):
            pairs = self._pairs(merged, one.objects)
            known = set(pairs.values())
            merged += [
                replace(track, id=number * NEW_IDS + track.id)
                for place, track in enumerate(one.objects)
                if place not in known
            ]
        objects = (self._believed(track, lists) for track in merged)
        return replace(lists[0], objects=tuple(objects))

    def completed(self, selected: object, others: Sequence[object]) -> Tracks | None:
        """Return a list with what only others show in the way; those get ids of their own.

        `others` are all that count but the selected one, those that agree with it, too.
        """
        assert isinstance(selected, Tracks)
        lists = [selected, *(other for other in others if isinstance(other, Tracks))]
        merged = list(selected.objects)
        for number, one in enumerate(lists[1:], 1):
            known = set(self._pairs(merged, one.objects, self._elsewhere).values())
            alone = [t for i, t in enumerate(one.objects) if i not in known]
            in_the_way = sorted(filter(self._is_in_the_way, alone), key=lambda t: t.box.x)
            merged += [
                replace(self._believed(track, lists), id=number * NEW_IDS + track.id)
                for track in in_the_way[: OBJECTS_MAX - len(merged)]
            ]
        is_more = len(merged) > len(selected.objects)
        return replace(selected, objects=tuple(merged)) if is_more else None

    def _believed(self, track: Track, lists: Sequence[Tracks]) -> Track:
        """Return a track that exists as far as the lists show it."""
        support = sum(any(self._elsewhere(track, t) <= 1 for t in one.objects) for one in lists)
        return replace(track, existence=track.existence * support / len(lists))

    def _in_range(self, tracks: Tracks) -> list[Track]:
        return [t for t in tracks.objects if math.hypot(t.box.x, t.box.y) <= self.max_range]

    def _is_in_the_way(self, track: Track) -> bool:
        return 0 <= track.box.x <= self.ahead and abs(track.box.y) <= self.aside

    def _pairs(
        self, ours: Sequence[Track], theirs: Sequence[Track], apart: Apart | None = None
    ) -> dict[int, int]:
        """Return which of theirs is which of ours, by place in the lists."""
        if not ours or not theirs:
            return {}
        apart = apart or self._apart
        costs = np.full((len(ours), len(theirs)), FAR)
        for i, one in enumerate(ours):
            for j, other in enumerate(theirs):
                away = math.hypot(one.box.x - other.box.x, one.box.y - other.box.y)
                if away <= self._gate(one, other) and apart(one, other) <= 1:
                    costs[i, j] = away
        rows, columns = linear_sum_assignment(costs)
        found = zip(rows.tolist(), columns.tolist(), strict=True)
        return {i: j for i, j in found if costs[i, j] < FAR}

    def _gate(self, one: Track, other: Track) -> float:
        """Return how far apart a pair may be: by the range of the further one."""
        far = max(math.hypot(track.box.x, track.box.y) for track in (one, other))
        return max(self.gate, self.gate_share * far)

    def _elsewhere(self, one: Track, other: Track) -> float:
        """Return how far apart they are and move; more than 1: these are two things."""
        if _group(one) != _group(other):
            return math.inf
        away = math.hypot(one.box.x - other.box.x, one.box.y - other.box.y)
        speed = math.hypot(one.vx - other.vx, one.vy - other.vy)
        return max(away / self._gate(one, other), speed / self.speed)

    def _apart(self, one: Track, other: Track) -> float:
        """Return how far all that a planner reads of them lies apart; at most 1: alike."""
        if one.confirmed != other.confirmed:
            return math.inf
        a, b = one.box, other.box
        sizes = (a.length - b.length, a.width - b.width, a.height - b.height)
        turned = abs(math.remainder(a.yaw - b.yaw, math.pi)) if _has_heading(one) else 0.0
        spreads = zip(_spreads(one), _spreads(other), strict=True)
        parts = (
            self._elsewhere(one, other),
            abs(one.closing_speed - other.closing_speed) / self.speed,
            abs(one.nearest_x - other.nearest_x) / self._gate(one, other),
            max(map(abs, sizes)) / self.size,
            turned / self.turned,
            *(abs(p - q) / self.spread for p, q in spreads),
        )
        return max(math.inf if math.isnan(part) else part for part in parts)


def _spreads(track: Track) -> tuple[float, ...]:
    """Return the standard deviations of x, y, vx and vy, and of x and y HORIZON later."""
    p = track.covariance
    variances = [float(p[i, i]) for i in range(4)]
    for place, speed in ((0, 2), (1, 3)):
        later = p[place, place] + 2 * HORIZON * p[place, speed] + HORIZON**2 * p[speed, speed]
        variances.append(float(later))
    return tuple(math.sqrt(max(v, 0.0)) if v >= -ROUNDING else math.nan for v in variances)


def _has_heading(track: Track) -> bool:
    return track.box.length > 2 * track.box.width


def _group(track: Track) -> str:
    return GROUPS.get(track.label, "unknown")
